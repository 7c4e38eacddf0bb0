"""Graphs: loading, looking at ops, fusing, saving."""
from __future__ import annotations

import json
import math
import os
from typing import Any, Iterable, NamedTuple

import numpy as np

from . import _gaf
from .arrays import as_array, check_names, from_native
from .config import FusionConfig, merged
from .errors import ConfigError, UnsupportedError, UsageError
from .report import Report


class ValueInfo(NamedTuple):
    """An input or output: dtype as numpy says it; a free dimension of the shape is a str."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


class Op:
    """One executable node, or one kernel of a fused graph."""

    name: str
    type: str
    domain: str
    dtype: str
    attrs: dict[str, Any]
    inputs: list[str]
    outputs: list[str]
    original_names: list[str]
    shape: tuple[int | str, ...]
    input_shapes: list[tuple[int | str, ...]]
    output_shapes: list[tuple[int | str, ...]]
    problem: tuple[int, ...] | None
    compute_kind: str
    flops: int
    bytes_read: int
    bytes_written: int
    view: bool

    def __init__(self, record: dict[str, Any]) -> None:
        for key, value in record.items():
            if key in ("shape", "problem"):
                value = _hashable(value)
            elif key in ("input_shapes", "output_shapes"):
                value = [_hashable(v) for v in value]
            elif key in ("flops", "bytes_read", "bytes_written"):
                value = int(value)
            setattr(self, key, value)

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}{list(self.input_shapes)} -> {list(self.output_shapes)} {self.dtype}"


class Group:
    """Ops that share one kernel: id, kernel, ops (original names), gain (per cent; NaN where a file lists the group), why, status."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.id: str = record["id"]
        self.kernel: str = record["kernel"]
        self.ops: list[str] = record["original_nodes"]
        self.gain: float = record["gain"]
        self.why: str = record["why"]
        self.status: str = record["status"]

    def __repr__(self) -> str:
        return f"{self.id} {self.kernel} ({' '.join(self.ops)})"


class Graph:
    """A model as loaded, or as fused. Callers cannot change it; str() lists one op a line."""

    def __init__(self, model: "_gaf.Model", planned: "_gaf.Planned | None" = None, config: FusionConfig | None = None) -> None:
        self._model, self._planned, self._config = model, planned, config
        self._compiled: Any = None

    @property
    def _native(self) -> Any:
        return self._planned or self._model

    @property
    def name(self) -> str:
        """File name, or "model"."""
        return self._model.name

    @property
    def inputs(self) -> list[ValueInfo]:
        """What the model takes, in order."""
        return [ValueInfo(v["name"], v["dtype"], tuple(v["shape"])) for v in json.loads(self._model.values(False))]

    @property
    def outputs(self) -> list[ValueInfo]:
        """What the model gives, in order."""
        return [ValueInfo(v["name"], v["dtype"], tuple(v["shape"])) for v in json.loads(self._model.values(True))]

    @property
    def ops(self) -> list[Op]:
        """Nodes in order; of a fused graph, each kernel is one."""
        return [Op(r) for r in json.loads(self._native.ops())]

    @property
    def groups(self) -> list[Group]:
        """What was planned; of a graph that was only loaded, the groups that its file lists (a fused file does)."""
        if self.report:
            return [Group(g) for g in self.report.groups]
        return [Group({"id": f"g{i}", "kernel": kernel, "original_nodes": nodes, "gain": math.nan, "why": why, "status": "fused"})
                for i, (kernel, nodes, why) in enumerate(self._model.groups())]

    @property
    def num_ops(self) -> int:
        """Executable nodes; a fused group is one, views count nothing."""
        return self._model.num_ops() if not self._planned else sum(not op.view for op in self.ops)

    @property
    def num_kernels(self) -> int:
        """Kernel launches."""
        return self.report.totals["kernels_after"] if self.report else self.num_ops

    @property
    def report(self) -> Report | None:
        """What was decided and why; None on a graph that was only loaded."""
        return Report(self._planned) if self._planned else None

    def op(self, name: str) -> Op:
        """The op of that name; KeyError with the nearest name."""
        ops = {op.name: op for op in self.ops}
        if name not in ops:
            near = _gaf.nearest(name, list(ops))
            raise KeyError(f"no op '{name}'" + (f" (did you mean '{near}'?)" if near else ""))
        return ops[name]

    def run(self, inputs: dict[str, np.ndarray], **kw: Any) -> dict[str, np.ndarray]:
        """Compiles once with the graph's settings, then runs."""
        if self._compiled is None:
            from .compiled import compile as compile_
            self._compiled = compile_(self, self._config)
        results: dict[str, np.ndarray] = self._compiled.run(inputs, **kw)
        return results

    def to_onnx(self) -> bytes:
        """The fused graph as an ONNX file."""
        planned = self._planned or _gaf.plan(self._model, (self._config or FusionConfig())._layer())
        return planned.onnx()

    def __str__(self) -> str:
        return "\n".join(map(repr, self.ops))

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {self.num_ops} ops, {len(self.inputs)} inputs, {len(self.outputs)} outputs>"

    def _repr_html_(self) -> str:
        from html import escape
        return f"<pre>{escape(str(self))}</pre>"


def load_model(source: Any, *, shapes: dict[str, tuple[int | None, ...]] | None = None, dims: dict[str, int] | None = None,
               overridden: Iterable[str] = (), strict: bool = False, native: bool = True) -> Graph:
    """A path, bytes, an onnx.ModelProto or a Graph.

    shapes: input name -> dims, -1 keeps one free. dims: symbolic dimension -> number.
    overridden: weights (initializers) that the model lists among its inputs too. Each becomes an input, whose value every run gives;
    those that are not named stay the constants that the file has.
    strict and native have no effect on .onnx and .gaf files.
    Raises ModelError for what is no valid model, ShapeError and UsageError for shapes and names that do not fit.
    """
    try:
        shape_list = [(k, [-1 if d is None else int(d) for d in v]) for k, v in (shapes or {}).items()]
        dim_list = [(k, int(v)) for k, v in (dims or {}).items()]
    except (TypeError, ValueError) as e:
        raise UsageError(f"GAF1102: shapes are tuples of whole numbers by input, dims whole numbers by name: {e}", code="GAF1102",
                         remedy="for example shapes={'x': (4, 8)} or dims={'batch': 4}") from e
    if isinstance(overridden, str):
        raise UsageError(f"GAF1102: overridden is a list of names, not '{overridden}'", code="GAF1102", remedy=f"give overridden=['{overridden}']")
    given = list(overridden)
    if isinstance(source, Graph):
        if shape_list or dim_list or given:
            raise UsageError("GAF1102: shapes, dims and overridden are given when a file is loaded, not for a Graph", code="GAF1102")
        return source
    if hasattr(source, "SerializeToString"):
        source = source.SerializeToString()
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Graph(_gaf.load_bytes(bytes(source), shape_list, dim_list, given))
    if isinstance(source, (str, os.PathLike)):
        suffix = os.path.splitext(os.fspath(source))[1]
        if suffix in (".gafm", ".pt2", ".mlir", ".pb"):
            raise UnsupportedError(f"GAF4009: loading {suffix} files is not available in this version", code="GAF4009",
                                   remedy="give an .onnx or .gaf file")
        return Graph(_gaf.load(os.fspath(source), shape_list, dim_list, given))
    raise UsageError(f"GAF1102: a model is a path, bytes, an onnx.ModelProto or a Graph, not {type(source).__name__}", code="GAF1102")


load_graph = load_model


def fuse(model: Any, config: FusionConfig | None = None, **overrides: Any) -> Graph:
    """A new graph in which each group of ops is one kernel; the argument is not changed."""
    config = merged(config, overrides)
    graph = load_model(model)
    return Graph(graph._model, _gaf.plan(graph._model, config._layer()), config)


def explain(model: Any, config: FusionConfig | None = None, **overrides: Any) -> Report:
    """Why each op was fused or not."""
    report = fuse(model, config, **overrides).report
    assert report is not None
    return report


def save(model: Any, path: str) -> None:
    """Writes .onnx or .gaf (graph text), atomically. Another suffix is a ConfigError."""
    path = os.fspath(path)
    if not path.endswith((".onnx", ".gaf")):
        raise ConfigError(f"GAF1102: cannot write '{path}': unknown suffix", code="GAF1102", remedy="use .onnx or .gaf")
    graph = model.graph if hasattr(model, "graph") else load_model(model)
    planned = graph._planned or _gaf.plan(graph._model, {"level": "0"})
    planned.save(path)


def random_inputs(model: Any, n: int = 0, ranges: dict[str, tuple[int, int]] | None = None) -> dict[str, np.ndarray]:
    """Inputs that depend on `n` only: float N(0,1), bool fair, integers uniform in the range given (default 0..7)."""
    graph = load_model(model)
    arrays = _gaf.random_inputs(graph._model, n, list((ranges or {}).items()))
    return {info.name: from_native(a) for info, a in zip(graph.inputs, arrays)}


def ordered(graph: Graph, inputs: dict[str, Any]) -> tuple[list[np.ndarray], list[str]]:
    """Arrays and dtypes in the graph's order."""
    infos = graph.inputs
    check_names(inputs, [i.name for i in infos])
    return [as_array(i.name, inputs[i.name], i.dtype)[0] for i in infos], [i.dtype for i in infos]
