"""What holds of every fusion report (gaf.report/1): each node of the model has one fate, each edge between two ops is inside a group or
has one reason with numbers, and the parts add up to the totals."""

GONE = ("view", "eliminated", "folded")


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
        assert n["fate"] in ("group", "alone", "extern", *GONE), name
        assert (n["fate"] == "group") == (n["group"] is not None) and (n["group"] is None or n["group"] in groups), name
        assert n["part_of"] is None or n["fate"] == "eliminated" and nodes[n["part_of"]]["fate"] in ("alone", "extern"), name
        if name in names:
            assert (name in listed) == (n["fate"] == "group"), name
    # sums
    assert near(sum(n["predicted_us"] for n in nodes.values()), totals["predicted_us_before"])
    assert near(sum(n["bytes"] for n in nodes.values()), totals["bytes_before"])
    alone = [n for n in nodes.values() if n["fate"] != "group"]
    assert near(sum(g["predicted_us"]["after"] for g in groups.values()) + sum(n["predicted_us"] for n in alone), totals["predicted_us_after"])
    assert near(sum(g["bytes_after"] for g in groups.values()) + sum(n["bytes"] for n in alone), totals["bytes_after"])
    stored = {w.name: w.ByteSize() for w in model.graph.initializer}
    for g in groups.values():
        inside = [n for n in nodes.values() if n["group"] == g["id"]]
        assert near(sum(n["predicted_us"] for n in inside), g["predicted_us"]["before"])
        assert near(g["gain"], 100 * (1 - g["predicted_us"]["after"] / g["predicted_us"]["before"]))
        # nothing is fused at a loss: times within half a per cent are a tie, which a tenth of the bytes decides; weights are read
        # either way
        weights = sum(stored.get(i, 0) for n in model.graph.node if n.name in g["original_nodes"] for i in n.input)
        saved = g["bytes_before"] - g["bytes_after"]
        assert g["gain"] > 0 or (g["gain"] > -0.5 * g["launches_saved"] and saved > 0.1 * (g["bytes_before"] - weights)), g
        assert len(g["nodes"]) > 1 and g["why"] and 0 <= g["resources"]["reg"] <= 0.8 and 0 <= g["resources"]["ub"] <= 0.8
    # every line: two ops, one reason with its numbers
    lines = report.not_fused
    assert len(lines) == len({(e["from"], e["to"]) for e in lines})
    for e in lines:
        assert e["from"] in nodes and e["to"] in nodes and e["from"] != e["to"]
        assert e["reason"] and e["text"] and e["numbers"] and e["could_save_us"] >= 0
        assert nodes[e["from"]]["group"] is None or nodes[e["from"]]["group"] != nodes[e["to"]]["group"]
    # every edge of the model: inside one group or kernel, or among those of one line
    told = [tuple(edge) for e in lines for edge in e["edges"]]
    assert len(told) == len(set(told)), "an edge has two lines"
    wanted = {(a, b) for a, b in edges_between_ops(model, nodes) if home(nodes, a) != home(nodes, b)}
    assert set(told) == wanted, (set(told) - wanted, wanted - set(told))
    for e in lines:  # one that stands for none is between what rewriting added or made neighbours
        assert e["edges"] or (e["from"], e["to"]) not in wanted, e
    for a, b in told:
        assert "not fused: " in report.why(a, b)


def home(nodes, name):
    """The group or kernel that a node of the model runs in; None where nothing of it is left, or no more than a view."""
    n = nodes[name]
    if n["op"] in ("Reshape", "Identity"):
        return None
    return n["group"] or n["part_of"] or (None if n["fate"] in GONE else name)


def edges_between_ops(model, nodes):
    """Pairs of ops of the model that are left, the first of which makes what the second reads; views and nodes that went on the way are
    looked through, except those that read no more than a size."""
    makers = {o: n for n in model.graph.node for o in n.output}
    for n in model.graph.node:
        if n.name not in nodes or home(nodes, n.name) is None:
            continue
        seen, open_ = set(), [n]
        while open_:
            at = open_.pop()
            if at.op_type in ("Shape", "Size"):
                continue
            for maker in [makers[i] for i in at.input if i in makers and makers[i].output[0] not in seen]:
                seen.add(maker.output[0])
                if maker.name in nodes and home(nodes, maker.name) is not None:
                    yield maker.name, n.name
                elif maker.name not in nodes or nodes[maker.name]["fate"] != "folded":
                    open_.append(maker)
