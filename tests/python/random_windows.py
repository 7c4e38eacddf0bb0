"""Convolutions, pools and data movement of random graphs, as random_ops.py; together they would pass the length of one file."""

import numpy as np
from random_builder import Reject
from random_ops import epilogue


def window_tokens(b, x, same):
    """Spatial sizes behind a window: the same where padding makes up for it, else computed from those before."""
    return tuple(t if keep else b.sizes.derived(t) for t, keep in zip(x.tokens[2:], same))


def conv(b):
    x = b.value(lambda v: v.array.dtype == np.float32 and v.rank in (3, 4))
    channels, spatial = x.shape[1], x.rank - 2
    if channels > 65:
        raise Reject
    kernel = [b.pick(1, 1, 2, 3, 3, 5) for _ in range(spatial)]
    if b.chance(0.7):
        kernel = kernel[:1] * spatial
    stride = [b.pick(1, 1, 1, 2, 3)] * spatial if b.chance(0.8) else [b.pick(1, 2) for _ in range(spatial)]
    dilation = [b.pick(1, 1, 1, 2)] * spatial
    attributes = {"kernel_shape": kernel, "strides": stride, "dilations": dilation}
    way = b.pick("same", "same", "none", "odd", "auto")
    pads = [0] * (2 * spatial)
    if way == "same":
        total = [d * (k - 1) for k, d in zip(kernel, dilation)]
        pads = [t // 2 for t in total] + [t - t // 2 for t in total]
    elif way == "odd":
        pads = [b.whole(0, k - 1) for k in kernel * 2]
    if way == "auto" and max(dilation) == 1:
        attributes["auto_pad"] = b.pick("SAME_UPPER", "SAME_LOWER", "VALID")
        b.sizes.fix(*x.tokens[2:])
    else:
        attributes["pads"] = pads
    group = b.pick(1, 1, 1, channels, next((g for g in (2, 3) if channels % g == 0), 1))
    out = channels * b.pick(1, 1, 2) if group == channels > 1 else group * b.pick(1, 2, 3, 4, 8, 16, 17)
    if out > 130 or out * channels // group * np.prod(kernel) * np.prod(x.shape[2:]) * x.shape[0] > 3e6:
        raise Reject
    b.sizes.fix(x.tokens[1])
    w = b.normal([out, channels // group] + kernel, 1 / np.sqrt(channels // group * np.prod(kernel)))
    same = [s == 1 and p + q == d * (k - 1) for s, k, d, p, q in zip(stride, kernel, dilation, pads[:spatial], pads[spatial:])]
    tokens = (x.tokens[0], None) + window_tokens(b, x, same)
    y = b.node("Conv", [x, w, b.normal([out])] if b.chance(0.6) else [x, w], tokens, group=group, **attributes)
    if b.chance(0.3):
        parts = [b.normal([out]), b.normal([out]), b.normal([out], 0.3), b.weight((b.rng.random([out]) + 0.5).astype(b.float))]
        y = b.node("BatchNormalization", [y] + parts, tokens)
    epilogue(b, y)
    if b.chance(0.35):
        pool(b)


def pool(b):
    x = b.value(lambda v: v.array.dtype == np.float32 and v.rank in (3, 4))
    spatial = x.rank - 2
    op = b.pick("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
    if op.startswith("Global"):
        return b.node(op, [x], x.tokens[:2] + (None,) * spatial, exact=op == "GlobalMaxPool")
    kernel = [b.pick(2, 3)] * spatial
    stride = [b.pick(1, 2, 3)] * spatial
    pads = [b.pick(0, 0, 1)] * (2 * spatial) if b.chance(0.7) else [b.whole(0, 1) for _ in range(2 * spatial)]
    attributes = {"kernel_shape": kernel, "strides": stride, "pads": pads}
    if b.chance(0.25):
        attributes["ceil_mode"] = 1
        b.sizes.fix(*x.tokens[2:])
    if op == "AveragePool":
        attributes["count_include_pad"] = b.pick(0, 1)
    b.node(op, [x], x.tokens[:2] + window_tokens(b, x, [False] * spatial), exact=op == "MaxPool", **attributes)


def move(b):
    x = b.value(lambda v: v.rank > 0) if b.chance(0.9) else b.value(lambda v: v.rank > 0 and v.kind != "f")
    b.pick(transpose, transpose, reshape, reshape, squeeze, cut, cut, concat, concat, split, pad, gather, expand, tile)(b, x)


def transpose(b, x):
    order = [int(i) for i in b.rng.permutation(x.rank)]
    b.node("Transpose", [x], tuple(x.tokens[i] for i in order), exact=True, perm=order)


def reshape(b, x):
    way = b.pick("split", "merge", "flatten", "last", "any")
    if way == "flatten":
        axis = b.whole(0, x.rank)
        group = lambda t: t[0] if len(t) == 1 else b.sizes.free(*t) if any(u is not None for u in t) else None  # noqa: E731
        tokens = tuple(b.sizes.root(g) if g is not None and not b.sizes.made_of[b.sizes.root(g)] else g for g in (group(x.tokens[:axis]), group(x.tokens[axis:])))
        return b.node("Flatten", [x], tokens, exact=True, axis=axis)
    if way == "split":  # one number into two
        choices = [(i, f) for i, s in enumerate(x.shape) for f in (2, 3, 4, 7, 8) if s % f == 0 and s > f]
        if not choices:
            raise Reject
        at, f = b.pick(*choices)
        b.sizes.fix(x.tokens[at])
        shape = [0 if i < at else s for i, s in enumerate(x.shape)]
        for i in range(at + 1, x.rank):
            b.sizes.fix(x.tokens[i])
        return b.node("Reshape", [x, b.ints(shape[:at] + [f, x.shape[at] // f] + shape[at + 1:])], x.tokens[:at] + (None,) * (x.rank - at + 1), exact=True)
    if way == "merge" and x.rank > 1:  # all from one dim on
        at = b.whole(0, x.rank - 2)
        return b.node("Reshape", [x, b.ints([0] * at + [-1])], x.tokens[:at] + (b.sizes.free(*x.tokens[at:]),), exact=True)
    b.sizes.fix(*x.tokens)
    shape = list(x.shape)
    if way == "last" and x.rank > 1:
        shape = shape[:-2] + [-1]
    else:
        shape = [int(s) for s in b.rng.permutation(shape)]
    b.node("Reshape", [x, b.ints(shape)], (None,) * len(shape), exact=True)


def squeeze(b, x):
    ones = [i for i, s in enumerate(x.shape) if s == 1]
    if ones and b.chance(0.6):
        b.sizes.fix(*(x.tokens[i] for i in ones))
        axes = ones if b.chance(0.5) else ones[:1]
        return b.node("Squeeze", [x, b.ints(axes)], tuple(t for i, t in enumerate(x.tokens) if i not in axes), exact=True)
    if x.rank > 4:
        raise Reject
    at = b.whole(0, x.rank)
    b.node("Unsqueeze", [x, b.ints([at])], x.tokens[:at] + (None,) + x.tokens[at:], exact=True)


def cut(b, x):
    axes = sorted({b.whole(0, x.rank - 1) for _ in range(b.whole(1, 2))})
    starts, ends, steps, tokens = [], [], [], list(x.tokens)
    for a in axes:
        size = x.shape[a]
        if size < 2:
            raise Reject
        way = b.pick("range", "tail", "stride", "back")
        start = b.whole(0, size // 2)
        if way == "back":
            starts, ends, steps = starts + [-1], ends + [-(2 ** 31)], steps + [-b.pick(1, 1, 2)]
        elif way == "tail":
            starts, ends, steps = starts + [-b.whole(1, size)], ends + [2 ** 31], steps + [1]
        else:
            starts, ends, steps = starts + [start], ends + [b.pick(b.whole(start + 1, size), -1 if start < size - 1 else size)], steps + [1 if way == "range" else b.whole(2, 3)]
        if way == "tail" or not (way == "back" and steps[-1] == -1):
            b.sizes.fix(tokens[a])
            tokens[a] = None
    b.node("Slice", [x, b.ints(starts), b.ints(ends), b.ints(axes), b.ints(steps)], tokens, exact=True)


def concat(b, x):
    axis = b.whole(0, x.rank - 1)
    def beside(v):
        return v.array.dtype == x.array.dtype and v.rank == x.rank and all(i == axis or s == t for i, (s, t) in enumerate(zip(v.shape, x.shape)))
    parts = [x] + [b.value(beside) for _ in range(b.whole(1, 2))]
    if b.chance(0.2):
        shape = [b.whole(1, 4) if i == axis else s for i, s in enumerate(x.shape)]
        parts.append(b.weight((b.rng.standard_normal(shape) * 2).astype(x.array.dtype)))
    tokens = list(x.tokens)
    for p in parts[1:]:
        for i in range(x.rank):
            if i != axis:
                tokens[i] = b.sizes.join(tokens[i], p.tokens[i])
    along = [p.tokens[axis] for p in parts]
    tokens[axis] = b.sizes.free(*along) if any(t is not None for t in along) else None
    order = [parts[i] for i in b.rng.permutation(len(parts))]
    b.node("Concat", order, tokens, exact=True, axis=axis if b.chance(0.6) else axis - x.rank)


def split(b, x):
    axis = b.whole(0, x.rank - 1)
    size = x.shape[axis]
    if size < 2:
        raise Reject
    b.sizes.fix(x.tokens[axis])
    tokens = tuple(None if i == axis else t for i, t in enumerate(x.tokens))
    if size % 2 == 0 and b.chance(0.5):
        parts = [size // 2] * 2
    else:
        at = b.whole(1, size - 1)
        parts = [at, size - at] if at + 1 >= size or b.chance(0.6) else [at, 1, size - at - 1]
    b.node("Split", [x, b.ints(parts)], [tokens] * len(parts), exact=True, outputs=len(parts), axis=axis)


def pad(b, x):
    mode = b.pick("constant", "constant", "reflect", "edge")
    most = [3 if mode != "reflect" else min(3, s - 1) for s in x.shape]
    at = [b.whole(0, m) if b.chance(0.5) else 0 for m in most * 2]
    if mode == "constant" and b.chance(0.15):
        at[0] = -min(1, x.shape[0] - 1)
    changed = [at[i] != 0 or at[i + x.rank] != 0 for i in range(x.rank)]
    if mode != "constant":
        b.sizes.fix(*x.tokens)
    tokens = tuple(b.sizes.derived(t) if c else t for t, c in zip(x.tokens, changed))
    args = [x, b.ints(at)]
    if mode == "constant" and b.chance(0.5):
        args.append(b.weight(np.asarray(1.5).astype(x.array.dtype)))
    b.node("Pad", args, tokens, exact=True, mode=mode)


def gather(b, x):
    axis = b.whole(0, x.rank - 1)
    size = x.shape[axis]
    b.sizes.fix(x.tokens[axis])
    shape = b.pick([], [1], [3], [5], [2, 2])
    if x.rank + len(shape) > 6:
        raise Reject
    index = b.weight(b.rng.integers(-size if b.chance(0.3) else 0, size, shape).astype(np.int64))
    b.node("Gather", [x, index], x.tokens[:axis] + (None,) * len(shape) + x.tokens[axis + 1:], exact=True, axis=axis)


def expand(b, x):
    lead = [b.whole(2, 4)] if x.rank < 5 and b.chance(0.4) else []
    ones = [s == 1 and b.chance(0.8) for s in x.shape]
    if not lead and not any(ones):
        raise Reject
    b.sizes.fix(*(t for t, s in zip(x.tokens, x.shape) if s == 1))
    shape = lead + [b.whole(2, 7) if o else 1 for o in ones]
    b.node("Expand", [x, b.ints(shape)], (None,) * len(lead) + tuple(None if o else t for o, t in zip(ones, x.tokens)), exact=True)


def tile(b, x):
    times = [b.pick(1, 1, 2, 3) for _ in x.shape]
    b.node("Tile", [x, b.ints(times)], tuple(t if n == 1 else b.sizes.derived(t) for n, t in zip(times, x.tokens)), exact=True)
