"""What holds of every fusion report (gaf.report/1): each node of the model has one fate, each edge between two ops is inside a group or
has one reason with numbers, and the parts add up to the totals."""


def check(model, report):
    """model: onnx.ModelProto; report: graph_autofusion.Report. AssertionError where something does not hold."""
    nodes, groups, totals = report.nodes, {g["id"]: g for g in report.groups}, report.totals

    def near(got, want):
        return abs(got - want) <= 1e-9 * max(abs(got), abs(want), 1)

    # every node of the file once, with one fate
    names = [n.name for n in model.graph.node if n.name and n.op_type != "Constant"]
    assert set(names) <= set(nodes), set(names) - set(nodes)
    listed = [name for g in groups.values() for name in g["original_nodes"]]
    assert len(listed) == len(set(listed)) and set(listed) <= set(names)
    for name, n in nodes.items():
        assert n["fate"] in ("group", "alone", "extern", "eliminated", "folded", "view"), name
        assert (n["fate"] == "group") == (n["group"] is not None) and (n["group"] is None or n["group"] in groups), name
        if name in names:
            assert (name in listed) == (n["fate"] == "group"), name
    # sums
    assert near(sum(n["predicted_us"] for n in nodes.values()), totals["predicted_us_before"])
    assert near(sum(n["bytes"] for n in nodes.values()), totals["bytes_before"])
    alone = [n for n in nodes.values() if n["fate"] != "group"]
    assert near(sum(g["predicted_us"]["after"] for g in groups.values()) + sum(n["predicted_us"] for n in alone), totals["predicted_us_after"])
    assert near(sum(g["bytes_after"] for g in groups.values()) + sum(n["bytes"] for n in alone), totals["bytes_after"])
    for g in groups.values():
        inside = [n for n in nodes.values() if n["group"] == g["id"]]
        assert near(sum(n["predicted_us"] for n in inside), g["predicted_us"]["before"])
        assert near(g["gain"], 100 * (1 - g["predicted_us"]["after"] / g["predicted_us"]["before"])) and g["gain"] > 0
        assert len(g["nodes"]) > 1 and g["why"] and 0 <= g["resources"]["reg"] <= 0.8 and 0 <= g["resources"]["ub"] <= 0.8
    # every edge between two ops: inside a group, or one reason with its numbers
    seen = [(e["from"], e["to"]) for e in report.not_fused]
    assert len(seen) == len(set(seen))
    for e in report.not_fused:
        assert e["from"] in nodes and e["to"] in nodes and e["from"] != e["to"]
        assert e["reason"] and e["text"] and e["numbers"] and e["could_save_us"] >= 0
        assert nodes[e["from"]]["group"] is None or nodes[e["from"]]["group"] != nodes[e["to"]]["group"]
    # A node of the model may have become one with others of its group, so edges are looked up between groups.
    unit = lambda name: nodes[name]["group"] or name  # noqa: E731
    told = {(unit(e["from"]), unit(e["to"])) for e in report.not_fused}
    added = {unit(name) for e in report.not_fused for name in (e["from"], e["to"]) if {e["from"], e["to"]} - set(names)}
    views = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Shape")
    makers = {o: n for n in model.graph.node for o in n.output if n.name in nodes and n.op_type not in views}
    for n in model.graph.node:
        if n.name not in nodes or n.op_type in views:
            continue
        for source in (makers[i].name for i in n.input if i in makers):
            if not all(nodes[x]["fate"] in ("group", "alone", "extern") for x in (source, n.name)):
                continue
            ends = unit(source), unit(n.name)
            assert ends[0] == ends[1] or ends in told or set(ends) & added, (source, n.name)
            assert report.why(source, n.name)
