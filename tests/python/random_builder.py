"""What random graphs (random_graphs.py) are built with. Each node is evaluated by the reference as it is drawn, which gives its shape and
keeps values in a range where float32 results can be compared; a draw that cannot be, or whose values grow, is taken back. Sizes of
inputs stay free (symbolic) as long as no weight, attribute or broadcast fixes them: `Sizes` follows that. Knows nothing of which ops
there are."""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

import graph_autofusion as gaf
from graph_autofusion import _gaf

MAX_ELEMENTS = 20000  # the reference evaluates element by element
MAX_VALUE = 200.0  # beyond that a float32 rounding is no longer small beside 1


class Reject(Exception):
    """The op that was drawn does not fit: another is drawn."""


class Sizes:
    """Classes of equal free sizes. A size that meets a number is fixed; one computed from others fixes them when it meets anything."""

    def __init__(self):
        self.parent, self.fixed, self.made_of = [], [], []

    def free(self, *made_of):
        self.parent.append(len(self.parent))
        self.fixed.append(False)
        self.made_of.append([t for t in made_of if t is not None])
        return len(self.parent) - 1

    def root(self, t):
        while self.parent[t] != t:
            t = self.parent[t]
        return t

    def fix(self, *tokens):
        for t in tokens:
            if t is not None and not self.fixed[self.root(t)]:
                self.fixed[self.root(t)] = True
                self.fix(*self.made_of[self.root(t)])

    def join(self, a, b):
        """The token of two sizes that must be equal."""
        if a is None or b is None:
            return self.fix(a, b)
        a, b = self.root(a), self.root(b)
        if a == b:
            return a
        if self.made_of[a] or self.made_of[b]:
            return self.fix(a, b)
        self.parent[b] = a
        self.fixed[a] |= self.fixed[b]
        return a

    def derived(self, t):
        return None if t is None or self.fixed[self.root(t)] else self.free(t)


@dataclass
class Drawn:
    """A value: its array, the token of each dim (None: a number), and whether the value has the same bits however it is computed."""

    name: str
    array: np.ndarray
    tokens: tuple
    exact: bool

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim

    @property
    def kind(self):
        return self.array.dtype.kind


@dataclass
class Case:
    """A model and its inputs. The dims of inputs that may be free are named; `feed` gives them sizes."""

    model: onnx.ModelProto
    feed: dict

    def bound(self, keep=lambda name: False):
        """The same with numbers for the named dims, except those to keep."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for i in model.graph.input:
            for dim, size in zip(i.type.tensor_type.shape.dim, self.feed[i.name].shape):
                if dim.dim_param and not keep(dim.dim_param):
                    dim.dim_value = size
        return Case(model, self.feed)


def interpret(model, feed):
    """Every output of the model by the definition of its ops."""
    graph = gaf.load_model(model)
    names = [i.name for i in graph.inputs]
    return [a for a, _ in _gaf.interpret(graph._model, [np.asarray(feed[n], order="C") for n in names], [i.dtype for i in graph.inputs])]


def info(name, array, dims=None):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape if dims is None else dims)


class Builder:
    """The graph so far."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.opset = int(self.rng.choice([17, 20]))
        self.float = np.float64 if self.rng.random() < 0.05 else np.float32
        self.sizes, self.nodes, self.inputs, self.values, self.weights = Sizes(), [], [], [], {}
        self.count = 0

    # ---- drawing ----
    def pick(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def chance(self, p):
        return self.rng.random() < p

    def whole(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def value(self, want=None):
        """A value drawn so far, by default of the graph's float; late ones are likelier, so that chains grow."""
        fitting = [v for v in self.values if (want(v) if want else v.array.dtype == self.float)]
        if not fitting:
            raise Reject
        return fitting[-1 - min(int(self.rng.geometric(0.45)) - 1, len(fitting) - 1)]

    def exact(self):
        return self.value(lambda v: v.exact and v.array.dtype == self.float)

    # ---- making ----
    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def input(self, shape, tokens=None, dtype=None):
        dtype = dtype or self.float
        array = self.rng.random(shape) < 0.5 if dtype is bool else self.rng.standard_normal(shape).astype(dtype)
        tokens = tuple(self.sizes.free() for _ in shape) if tokens is None else tokens
        v = Drawn(self.name("x"), np.asarray(array), tokens, True)
        self.inputs.append(v)
        self.values.append(v)
        return v

    def weight(self, array):
        array = np.asarray(array)
        v = Drawn(self.name("w"), array, (None,) * array.ndim, True)
        self.weights[v.name] = array
        return v

    def normal(self, shape, scale=1.0):
        return self.weight((self.rng.standard_normal(shape) * scale).astype(self.float))

    def number(self, x):
        return self.weight(np.asarray(x, self.float))

    def ints(self, numbers):
        return self.weight(np.asarray(numbers, np.int64))

    def node(self, op, args, tokens, exact=False, outputs=1, **attributes):
        """Adds a node whose first result has these tokens (`tokens` of all results when there are several)."""
        names = [self.name("v") for _ in range(outputs)]
        n = helper.make_node(op, [a.name if a else "" for a in args], names, self.name(op.lower() + "_"), **attributes)
        arrays = self.evaluate(n, [a for a in args if a])
        for a in arrays:
            if a.size > MAX_ELEMENTS or not a.size or (a.dtype.kind == "f" and not (np.isfinite(a).all() and np.abs(a).max() <= MAX_VALUE)):
                raise Reject
        all_tokens = tokens if outputs > 1 else [tokens]
        made = [Drawn(name, a, tuple(t), exact and all(x.exact for x in args if x)) for name, a, t in zip(names, arrays, all_tokens)]
        for v in made:
            assert len(v.tokens) == v.rank, (op, v.tokens, v.shape)
        self.nodes.append(n)
        self.values += made
        return made if outputs > 1 else made[0]

    def evaluate(self, n, args):
        stored = [numpy_helper.from_array(a.array, a.name) for a in args if a.name in self.weights]
        fed = {a.name: a for a in args if a.name not in self.weights}
        outputs = [helper.make_empty_tensor_value_info(o) for o in n.output]
        graph = helper.make_graph([n], "g", [info(k, a.array) for k, a in fed.items()], outputs, stored)
        return interpret(self.proto(graph), {k: a.array for k, a in fed.items()})

    def proto(self, graph):
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def dim(self, size, token):
        return size if token is None or self.sizes.fixed[self.sizes.root(token)] else f"d{self.sizes.root(token)}"

    def finish(self):
        """Every value that nothing reads is an output, and now and then one that something reads."""
        read = {i for n in self.nodes for i in n.input}
        made = {o for n in self.nodes for o in n.output}
        outputs = [v for v in self.values if v.name in made and (v.name not in read or self.chance(0.08))]
        inputs = [v for v in self.inputs if v.name in read]
        outs = [helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(v.array.dtype), [None] * v.rank) for v in outputs]
        ins = [info(v.name, v.array, [self.dim(s, t) for s, t in zip(v.shape, v.tokens)]) for v in inputs]
        stored = [numpy_helper.from_array(a, k) for k, a in self.weights.items() if k in read]
        return Case(self.proto(helper.make_graph(self.nodes, "g", ins, outs, stored)), {v.name: v.array for v in inputs})


def broadcast(b, x, y):
    """The tokens of the result of an elementwise op; a size of 1 that is stretched, or that meets a 1, is a number."""
    if not fits(x, y):
        raise Reject
    rank = max(x.rank, y.rank)
    pad = lambda v: ([(1, None)] * (rank - v.rank)) + list(zip(v.shape, v.tokens))  # noqa: E731
    tokens = []
    for (s, t), (u, w) in zip(pad(x), pad(y)):
        if s == u != 1:
            tokens.append(b.sizes.join(t, w))
        else:
            b.sizes.fix(t if s == 1 else None, w if u == 1 else None)
            tokens.append(w if s == 1 else t)
            tokens[-1] = None if s == u else tokens[-1]
    return tuple(tokens)


def fits(x, y):
    try:
        return np.prod(np.broadcast_shapes(x.shape, y.shape)) <= MAX_ELEMENTS
    except ValueError:
        return False


def partner(b, x, constant=None):
    """Something to combine x with: a value, a weight or an input that broadcasts with it."""
    choice = constant or b.pick("value", "value", "value", "weight", "weight", "input")
    if choice == "value":
        return b.value(lambda v: v is not x and v.array.dtype == x.array.dtype and fits(x, v))
    if choice == "input" and len(b.inputs) < 5:
        kept = [b.chance(0.7) for _ in x.shape]
        first = 0 if b.chance(0.6) else b.whole(0, x.rank)
        shape = [s if k else 1 for s, k in zip(x.shape, kept)][first:]
        return b.input(shape, tuple(t if k else None for t, k in zip(x.tokens, kept))[first:], x.array.dtype.type)
    # weights: numbers only where x has numbers, else free sizes would all be lost
    whole = b.chance(0.15)
    shape = [s if whole or (b.chance(0.6) and (t is None or b.sizes.fixed[b.sizes.root(t)])) else 1 for s, t in zip(x.shape, x.tokens)]
    if b.chance(0.15):
        shape = [1] * b.whole(0, 1) + shape
    else:
        shape = shape[b.whole(0, x.rank):] if b.chance(0.5) else shape
    return b.weight((b.rng.standard_normal(shape)).astype(x.array.dtype))
