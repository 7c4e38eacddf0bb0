"""The ops that random graphs are made of: each function draws one op, or one composite spelled out, onto a Builder of random_builder.py,
or raises Reject. Ops that turn a last bit into another answer (Floor, comparisons, casts to integers) are drawn only on values that
have the same bits however they are computed. Knows nothing of properties or configs."""

import numpy as np
from random_builder import Reject, broadcast, fits, partner

SAME = ["Neg", "Abs", "Relu", "Identity", "Sign", "Floor", "Ceil", "Round", "LeakyRelu", "ThresholdedRelu", "Shrink"]  # exact in, exact out
JUMPS = {"Sign", "Floor", "Ceil", "Round", "ThresholdedRelu", "Shrink"}
SMOOTH = ["Tanh", "Sigmoid", "Erf", "Softplus", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "Softsign", "Mish", "Sin", "Cos", "Asinh",
          "Exp", "Sinh", "Cosh", "Gelu"]


def unary(b):
    op = b.pick("same", "smooth", "smooth", "guarded", "clip")
    if op == "same":
        op = b.pick(*SAME)
        x = b.exact() if op in JUMPS else b.value()
        b.node(op, [x], x.tokens, exact=op != "LeakyRelu")
    elif op == "smooth":
        op, x = b.pick(*SMOOTH), b.value()
        if (op in ("Gelu", "Mish") and b.opset < 20) or (op == "Celu" and x.array.dtype != np.float32) or (op in ("Exp", "Sinh", "Cosh") and np.abs(x.array).max() > 4) or (op in ("Sin", "Cos") and np.abs(x.array).max() > 30):
            raise Reject
        b.node(op, [x], x.tokens, **({"approximate": b.pick("none", "tanh")} if op == "Gelu" else {}))
    elif op == "guarded":  # kept away from where the slope grows
        x = b.value()
        y = b.node("Add", [b.node("Abs", [x], x.tokens), b.number(0.5)], x.tokens)
        b.node(b.pick("Sqrt", "Log", "Reciprocal"), [y], x.tokens)
    else:
        x = b.value()
        low, high = (b.number(v) if b.chance(0.8) else None for v in (-b.rng.random(), b.rng.random() * 2))
        b.node("Clip", [x, low, high], x.tokens, exact=True)


def binary(b):
    op, x = b.pick("Add", "Add", "Add", "Mul", "Mul", "Sub", "Max", "Min", "Div", "Pow", "PRelu", "Sum", "Mean"), b.value()
    if op == "Div":
        y = partner(b, x)
        y = b.node("Add", [b.node("Abs", [y], y.tokens), b.number(0.5)], y.tokens)
        b.node("Div", [x, y], broadcast(b, x, y))
    elif op == "Pow":
        if b.chance(0.5):
            return b.node("Pow", [x, b.number(b.pick(2.0, 3.0))], x.tokens)
        y = b.node("Add", [b.node("Abs", [x], x.tokens), b.number(0.5)], x.tokens)
        b.node("Pow", [y, b.number(b.pick(0.5, -0.5, 1.5, -1.0))], x.tokens)
    elif op == "PRelu":
        y = b.normal([s if t is None else 1 for s, t in zip(x.shape, x.tokens)][b.whole(0, x.rank):], 0.3)
        b.node("PRelu", [x, y], broadcast(b, x, y))
    elif op in ("Sum", "Mean"):
        y = partner(b, x)
        both = broadcast(b, x, y)
        b.node(op, [x, y, x] if b.chance(0.3) else [x, y], both)
    else:
        y = partner(b, x)
        args = [x, y] if b.chance(0.6) else [y, x]
        b.node(op, args, broadcast(b, *args), exact=op in ("Max", "Min"))


def compare(b):
    """A boolean of exact values, sometimes combined, and a Where by it; or an input that is boolean."""
    if b.chance(0.3):
        c = partner_bool(b, b.value())
    else:
        x = b.exact()
        y = b.number(0.0) if b.chance(0.4) else partner(b, x, "weight")
        c = b.node(b.pick("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"), [x, y], broadcast(b, x, y), exact=True)
    if b.chance(0.3):
        c = b.node("Not", [c], c.tokens, exact=True)
    if b.chance(0.2):
        d = b.value(lambda v: v.kind == "b" and v.shape == c.shape)
        c = b.node(b.pick("And", "Or", "Xor"), [c, d], broadcast(b, c, d), exact=True)
    if b.chance(0.25):
        return b.node("Cast", [c], c.tokens, exact=True, to=1 if b.float is np.float32 else 11)
    x = b.value(lambda v: v.array.dtype == b.float and fits(v, c))
    y = b.number(b.pick(0.0, -1.0, -100.0)) if b.chance(0.5) else partner(b, x)
    xy = Pair(b, x, y)
    b.node("Where", [c, x, y] if b.chance(0.5) else [c, y, x], broadcast(b, c, xy), exact=True)


class Pair:
    """What two values broadcast to, before a third comes."""

    def __init__(self, b, x, y):
        self.tokens, self.shape = broadcast(b, x, y), np.broadcast_shapes(x.shape, y.shape)
        self.rank = len(self.shape)


def partner_bool(b, x):
    if len(b.inputs) >= 5:
        raise Reject
    kept = [b.chance(0.7) for _ in x.shape]
    return b.input([s if k else 1 for s, k in zip(x.shape, kept)], tuple(t if k else None for t, k in zip(x.tokens, kept)), bool)


def cast(b):
    """To float64 and back; integers and what is computed with them; half on exact values."""
    x, own = b.value(), 1 if b.float is np.float32 else 11
    way = b.pick("double", "int", "half")
    if way == "double":
        y = b.node("Cast", [x], x.tokens, exact=True, to=11)
        y = b.node(b.pick("Tanh", "Neg", "Sigmoid"), [y], x.tokens)
    elif way == "int":
        x = b.exact()
        y = b.node("Cast", [x], x.tokens, exact=True, to=b.pick(6, 7))
        if b.chance(0.7):
            z = b.weight(b.rng.integers(-3, 4, [s if t is None else 1 for s, t in zip(x.shape, x.tokens)][b.whole(0, x.rank):]).astype(y.array.dtype))
            y = b.node(b.pick("Add", "Mul", "Sub", "Max", "Min"), [y, z], broadcast(b, y, z), exact=True)
    else:
        x = b.exact()
        y = b.node("Cast", [x], x.tokens, exact=True, to=10)
    if way == "double" or b.chance(0.85):  # doubles that float32 made are compared as float32
        b.node("Cast", [y], y.tokens, exact=True, to=own)


def axes_of(b, rank):
    axes = [i for i in range(rank) if b.chance(0.4)] or [rank - 1]
    return axes if b.chance(0.7) else [i - rank for i in axes]


def reduce_node(b, op, x, axes, keep, exact=False):
    tokens = tuple(None if i in [a % x.rank for a in axes] else t for i, t in enumerate(x.tokens))
    if not keep:
        tokens = tuple(t for i, t in enumerate(tokens) if i not in [a % x.rank for a in axes])
    if op == "ReduceSum" or b.opset >= 18:
        return b.node(op, [x, b.ints(axes)], tokens, exact=exact, keepdims=int(keep))
    return b.node(op, [x], tokens, exact=exact, axes=axes, keepdims=int(keep))


def reduction(b):
    x = b.value(lambda v: v.array.dtype == b.float and v.rank > 0)
    op = b.pick("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")
    axes = axes_of(b, x.rank)
    y = reduce_node(b, op, x, axes, b.chance(0.65), exact=op in ("ReduceMax", "ReduceMin"))
    if y.rank == x.rank and b.chance(0.5):  # what reductions are for: x against a statistic of itself
        b.node(b.pick("Sub", "Add", "Mul"), [x, y], broadcast(b, x, y))


def normalise(b):
    x = b.value(lambda v: v.array.dtype == b.float and v.rank > 0)
    op = b.pick("Softmax", "Softmax", "LogSoftmax", "LayerNormalization", "spelled softmax", "spelled layernorm", "spelled rms")
    axis = b.pick(-1, -1, b.whole(0, x.rank - 1))
    if op in ("Softmax", "LogSoftmax"):
        return b.node(op, [x], x.tokens, axis=axis)
    if op == "spelled softmax":
        e = b.node("Exp", [b.node("Sub", [x, reduce_node(b, "ReduceMax", x, [axis], True)], x.tokens)], x.tokens)
        return b.node("Div", [e, reduce_node(b, "ReduceSum", e, [axis], True)], x.tokens)
    # an epsilon that is not small: the rows may be constant, and 1/sqrt(eps) times a rounding is what comes out then
    epsilon = b.pick(0.01, 0.1)
    if op == "LayerNormalization":
        axis = b.pick(-1, -1, -min(2, x.rank))
        shape = x.shape[axis:]
        b.sizes.fix(*x.tokens[axis:])
        return b.node(op, [x, b.normal(shape), b.normal(shape) if b.chance(0.7) else None][:3], x.tokens, axis=axis, epsilon=epsilon)
    centred = b.node("Sub", [x, reduce_node(b, "ReduceMean", x, [axis], True)], x.tokens) if op == "spelled layernorm" else x
    squared = b.node("Pow", [centred, b.number(2.0)], x.tokens) if b.chance(0.6) else b.node("Mul", [centred, centred], x.tokens)
    mean = reduce_node(b, "ReduceMean", squared, [axis], True)
    root = b.node("Sqrt", [b.node("Add", [mean, b.number(epsilon)], mean.tokens)], mean.tokens)
    if b.chance(0.7):
        y = b.node("Div", [centred, root], x.tokens)
    else:
        y = b.node("Mul", [centred, b.node("Reciprocal", [root], root.tokens)], x.tokens)
    if b.chance(0.7):
        s = b.normal(x.shape[-1:])
        y = b.node("Mul", [y, s], broadcast(b, y, s))
        if b.chance(0.7):
            s = b.normal(x.shape[-1:])
            b.node("Add", [y, s], broadcast(b, y, s))


def activation(b, x=None):
    """GELU both ways, SiLU, spelled out; or one of the plain ones."""
    x, t = x or b.value(), None
    t = x.tokens
    kind = b.pick("gelu", "tanh gelu", "silu", "relu", "tanh")
    if kind in ("relu", "tanh"):
        return b.node(kind.capitalize(), [x], t)
    if kind == "silu":
        return b.node("Mul", [x, b.node("Sigmoid", [x], t)], t)
    if kind == "gelu":
        inner = b.node("Erf", [b.node("Div", [x, b.number(2 ** 0.5)], t)], t)
    else:
        cubed = b.node("Mul", [b.node("Pow", [x, b.number(3.0)], t), b.number(0.044715)], t)
        inner = b.node("Tanh", [b.node("Mul", [b.node("Add", [x, cubed], t), b.number((2 / np.pi) ** 0.5)], t)], t)
    y = b.node("Mul", [x, b.node("Add", [inner, b.number(1.0)], t)], t)
    return b.node("Mul", [y, b.number(0.5)], t)


def epilogue(b, y):
    """What models put behind a contraction: bias, activation, residual, in some order."""
    for _ in range(b.whole(0, 2)):
        kind = b.pick("bias", "activation", "residual", "scale")
        if kind == "bias":
            s = b.normal([y.shape[1]] + [1] * (y.rank - 2) if y.rank > 3 else y.shape[-1:])
            y = b.node("Add", [y, s], broadcast(b, y, s))
        elif kind == "scale":
            y = b.node("Mul", [y, b.number(0.5)], y.tokens)
        elif kind == "activation":
            y = activation(b, y)
        else:
            z = b.value(lambda v: v is not y and v.shape == y.shape and v.array.dtype == y.array.dtype)
            y = b.node("Add", [y, z], broadcast(b, y, z))


def matmul(b):
    x = b.value(lambda v: v.array.dtype == np.float32 and v.rank >= 1 and v.shape[-1] <= 300)
    k, n = x.shape[-1], b.pick(1, 2, 3, 7, 8, 16, 17, 31, 33, 64, 65)
    way = b.pick("weight", "weight", "run time", "self", "vector") if x.rank != 2 or b.chance(0.4) else "gemm"
    scale = 1 / np.sqrt(k)
    if way == "gemm":
        trans_a, trans_b = b.pick(0, 0, 0, 1), b.pick(0, 1)
        m, k = x.shape[::-1] if trans_a else x.shape
        b.sizes.fix(x.tokens[0 if trans_a else 1])
        args = [x, b.normal([n, k] if trans_b else [k, n], 1 / np.sqrt(k))]
        free = x.tokens[1 if trans_a else 0]
        if b.chance(0.7):
            args.append(b.normal(b.pick([n], [1, n], [1], [])))
        y = b.node("Gemm", args, (free, None), transA=trans_a, transB=trans_b, alpha=b.pick(1.0, 1.0, 0.5), beta=b.pick(1.0, 1.0, 2.0))
    elif way in ("weight", "vector") and x.rank >= 2:
        b.sizes.fix(x.tokens[-1])
        if way == "vector":
            return b.node("MatMul", [x, b.normal([k], scale)], x.tokens[:-1])
        batch = list(x.shape[:-2]) if x.rank > 2 and b.chance(0.15) else []
        b.sizes.fix(*(x.tokens[:-2] if batch else []))
        y = b.node("MatMul", [x, b.normal(batch + [k, n], scale)], x.tokens[:-1] + (None,))
    elif way == "run time" and x.rank >= 2 and len(b.inputs) < 5:
        # an input of its own, in the batch of x or stretched over it
        lead = [(s, t) if b.chance(0.6) else (1, None) for s, t in zip(x.shape[:-2], x.tokens[:-2])]
        b.sizes.fix(*(t for t, (s, u) in zip(x.tokens[:-2], lead) if u is None and x.shape[:-2] and s == 1))
        fresh = b.sizes.free()
        w = b.input([s for s, _ in lead] + [k, n], tuple(t for _, t in lead) + (x.tokens[-1], fresh))
        y = b.node("MatMul", [x, b.node("Mul", [w, b.number(scale)], w.tokens)], x.tokens[:-1] + (fresh,))
    elif x.rank >= 2:  # scores of x against itself, and sometimes their product with x
        order = list(range(x.rank - 2)) + [x.rank - 1, x.rank - 2]
        turned = b.node("Transpose", [x], tuple(x.tokens[i] for i in order), exact=True, perm=order)
        y = b.node("MatMul", [x, turned], x.tokens[:-1] + (x.tokens[-2],))
        y = b.node("Mul", [y, b.number(scale)], y.tokens)
        if b.chance(0.6):
            p = b.node("Softmax", [y], y.tokens, axis=-1)
            y = b.node("MatMul", [p, x], x.tokens)
    else:
        raise Reject
    epilogue(b, y)
