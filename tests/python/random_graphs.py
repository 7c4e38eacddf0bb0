"""Random ONNX graphs and their shrinking. `make(seed)` draws a directed graph of 3 to 14 nodes over the ops that have generated kernels,
with its inputs; `shrink(case, fails)` makes one that fails smaller while it still fails: fewer outputs, fewer nodes, smaller sizes,
plainer numbers. Works on any ONNX model without subgraphs. Knows nothing of the properties that are tested."""

import math

import numpy as np
import onnx
import random_ops
import random_windows
from onnx import helper, numpy_helper
from random_builder import MAX_ELEMENTS, Builder, Case, Reject, info, interpret

import graph_autofusion as gaf

SIZES = [1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 64, 65]  # of inputs: tiles, vectors, one more, one less
FAMILIES = [(random_ops.unary, 14), (random_ops.binary, 20), (random_ops.compare, 6), (random_ops.cast, 5), (random_ops.reduction, 9), (random_ops.normalise, 8),
            (random_ops.activation, 6), (random_ops.matmul, 14), (random_windows.conv, 12), (random_windows.pool, 5), (random_windows.move, 24)]
FLOAT32_ONLY = (random_ops.matmul, random_windows.conv, random_windows.pool)  # other floats run as externs


def make(seed):
    """The case of a seed."""
    b = Builder(seed)
    shape = [int(b.rng.choice(SIZES)) for _ in range(b.pick(1, 2, 2, 3, 3, 3, 4, 4, 4))]
    if len(shape) == 4:
        shape[0] = b.pick(1, 1, 2, 3)
    while math.prod(shape) > MAX_ELEMENTS // 3:
        shape[shape.index(max(shape))] //= 3
    b.input(shape)
    families = [(f, w) for f, w in FAMILIES if b.float is np.float32 or f not in FLOAT32_ONLY]
    wanted, weights = b.whole(3, 12), np.array([w for _, w in families], float)
    for _ in range(200):
        if len(b.nodes) >= wanted:
            break
        marks = len(b.nodes), len(b.inputs), len(b.values)
        try:
            families[int(b.rng.choice(len(families), p=weights / weights.sum()))][0](b)
            if len(b.nodes) > 14:
                raise Reject
        except (Reject, gaf.ModelError, gaf.ShapeError):  # the reference refuses what is no valid node
            del b.nodes[marks[0]:], b.inputs[marks[1]:], b.values[marks[2]:]
    return b.finish()


# ---- shrinking -----------------------------------------------------------------------------------------------------------------


def shrink(case, fails, most=300):
    """A smaller case for which fails(case) holds as for this one. Asks it at most that often; a candidate that is no valid model is skipped."""
    asked = 0
    while True:
        for candidate in smaller(case):
            if asked == most:
                return case
            try:
                onnx.checker.check_model(candidate.model)
                interpret(candidate.model, candidate.feed)
            except (gaf.GafError, onnx.checker.ValidationError, ValueError):
                continue
            asked += 1
            if fails(candidate):
                case = candidate
                break
        else:
            return case


def smaller(case):
    """Candidates, those that take most first. Each is smaller by a measure that cannot fall for ever."""
    for step in (without_outputs, ended_early, started_late, without_node, with_smaller_size, with_number_for_name, with_plain_input):
        yield from step(case)


def values_of(case):
    """Every value of the model by name."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    names = [o for n in model.graph.node for o in n.output if o]
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(o) for o in names)
    stored = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    return {**case.feed, **stored, **dict(zip(names, interpret(model, case.feed)))}


def rebuilt(case, nodes, outputs, values, weights=None, names=None):
    """The part of these nodes that the outputs need; what nothing in it makes is an input. names: input -> its dims as declared."""
    needed, kept = set(outputs), []
    for n in reversed(nodes):
        if needed & set(n.output):
            kept.insert(0, n)
            needed |= {i for i in n.input if i}
    made = {o for n in kept for o in n.output}
    stored = weights if weights is not None else {i.name: numpy_helper.to_array(i) for i in case.model.graph.initializer}
    declared = names if names is not None else {i.name: [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim] for i in case.model.graph.input}
    feed = {k: values[k] for k in sorted(needed - made - set(stored))}
    graph = helper.make_graph(kept, "g", [info(k, a, declared.get(k)) for k, a in feed.items()],
                              [info(o, values[o], [None] * values[o].ndim) for o in outputs if o in made],
                              [numpy_helper.from_array(a, k) for k, a in stored.items() if k in needed])
    model = helper.make_model(graph, opset_imports=case.model.opset_import, ir_version=case.model.ir_version)
    return Case(model, feed)


def without_outputs(case):
    outputs = [o.name for o in case.model.graph.output]
    if len(outputs) > 1:
        values = values_of(case)
        for o in outputs:
            yield rebuilt(case, case.model.graph.node, [o], values)
        for o in outputs:
            yield rebuilt(case, case.model.graph.node, [p for p in outputs if p != o], values)


def ended_early(case):
    """A value on the way is the only output, in place of one behind it."""
    nodes, values = case.model.graph.node, values_of(case)
    outputs = [o.name for o in case.model.graph.output]
    for n in nodes:
        for o in n.output:
            if o not in outputs:
                yield rebuilt(case, nodes, [o], values)
    for o in outputs:  # with several outputs: one moves up
        for n in nodes:
            if o in n.output:
                moved = [i for i in n.input if i in {x for m in nodes for x in m.output} and i not in outputs]
                for i in moved:
                    yield rebuilt(case, nodes, [p for p in outputs if p != o] + [i], values)


def started_late(case):
    """A value on the way is an input; those with most behind them first."""
    nodes, values = list(case.model.graph.node), values_of(case)
    outputs = [o.name for o in case.model.graph.output]
    for n in reversed(nodes):
        rest = [m for m in nodes if m is not n]
        if rest and not set(n.output) & set(outputs):
            yield rebuilt(case, rest, outputs, values)


def without_node(case):
    """Readers of a node read one of its operands of the same type and shape."""
    nodes, values = list(case.model.graph.node), values_of(case)
    outputs = [o.name for o in case.model.graph.output]
    for n in nodes:
        for i in dict.fromkeys(n.input):
            if not i or values[i].shape != values[n.output[0]].shape or values[i].dtype != values[n.output[0]].dtype:
                continue
            rest = []
            for m in nodes:
                if m is not n:
                    copy = onnx.NodeProto()
                    copy.CopyFrom(m)
                    copy.input[:] = [i if x == n.output[0] else x for x in m.input]
                    rest.append(copy)
            ends = [i if o == n.output[0] else o for o in outputs]
            if len(set(ends)) == len(ends) and any(e in {x for m in rest for x in m.output} for e in ends):
                yield rebuilt(case, rest, ends, values)


def with_smaller_size(case):
    """One size smaller wherever it stands: dims of inputs and weights, and numbers in weights of integers and in attributes."""
    graph = case.model.graph
    stored = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    declared = {i.name: [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim] for i in graph.input}
    sizes = {s for a in list(case.feed.values()) + list(stored.values()) for s in a.shape if s > 1}
    for size in sorted(sizes, reverse=True):
        for less in sorted({1, 2, size // 2, size - 1} - {0, size}):
            if less > size:
                continue
            cut = lambda a: a[tuple(slice(0, less if s == size else s) for s in a.shape)]  # noqa: B023, E731
            number = lambda a: np.where(a == size, less, a) if a.dtype.kind == "i" else a  # noqa: B023, E731
            for change in (cut, lambda a: number(cut(a))):  # noqa: B023
                values = {k: cut(a) for k, a in case.feed.items()}
                weights = {k: change(a) for k, a in stored.items()}
                names = {k: [less if d == size else d for d in dims] for k, dims in declared.items()}
                empty = {o: np.zeros([0] * len(i.type.tensor_type.shape.dim), helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)) for i in graph.output for o in [i.name]}
                yield rebuilt(case, graph.node, [o.name for o in graph.output], {**values, **empty}, weights, names)


def with_number_for_name(case):
    names = {d.dim_param for i in case.model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
    for name in sorted(names):
        yield case.bound(lambda other: other != name)  # noqa: B023


def with_plain_input(case):
    """Small whole numbers, which read better, in place of an input or weights."""
    plain = lambda a: (np.arange(a.size).reshape(a.shape) % 5 - 2).astype(a.dtype)  # noqa: E731
    is_plain = lambda a: a.dtype.kind != "f" or a.size < 2 or (a == np.round(a)).all()  # noqa: E731
    for name, a in case.feed.items():
        if not is_plain(a):
            yield Case(case.model, {**case.feed, name: plain(a)})
    for at, i in enumerate(case.model.graph.initializer):
        if not is_plain(numpy_helper.to_array(i)):
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            model.graph.initializer[at].CopyFrom(numpy_helper.from_array(plain(numpy_helper.to_array(i)), i.name))
            yield Case(model, case.feed)


def text(case):
    """The model as ONNX text. Inputs and weights are listed below, with their numbers where these are few."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    del model.graph.initializer[:]
    weights = {i.name: numpy_helper.to_array(i) for i in case.model.graph.initializer}
    rows = [("input", k, a) for k, a in case.feed.items()] + [("weight", k, a) for k, a in weights.items()]
    return "\n".join([onnx.printer.to_text(model)] + [f"# {what} {k}: {a.dtype}{list(a.shape)}" + (f" = {a.tolist()}" if a.size <= 12 else "") for what, k, a in rows])
