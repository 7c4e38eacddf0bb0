"""Compiled models: ready to run, from several threads at once."""
from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _gaf
from .arrays import as_array, check_names, from_native
from .config import FusionConfig, merged
from .errors import ShapeError, UnsupportedError, UsageError
from .graph import Graph, load_model
from .report import Report


@dataclass
class RunInfo:
    """Of one run: time, inputs that had to be copied, kernels launched, ops that ran outside generated code."""

    latency_us: float
    copies: int
    kernels: int
    fallbacks: int


class CompiledModel:
    """Calls take arrays by position or name; run() takes and returns dicts. last_run tells of the latest call."""

    def __init__(self, graph: Graph, native: "_gaf.Compiled") -> None:
        self._native = native
        self.graph = graph
        self.input_names: list[str] = native.input_names()
        self.output_names: list[str] = native.output_names()
        self._dtypes = [i.dtype for i in graph.inputs]
        self._out_dtypes = [o.dtype for o in graph.outputs]
        self._names = frozenset(self.input_names)
        self._last_run = 0.0, 0, 0, 0

    @property
    def last_run(self) -> RunInfo:
        """Of the latest call."""
        return RunInfo(*self._last_run)

    @property
    def report(self) -> Report:
        """What was decided, with compile times and cache hits."""
        return Report(self._native.planned(), self._native)

    def run(self, inputs: dict[str, Any], *, out: dict[str, np.ndarray] | None = None, like: str | None = None) -> dict[str, np.ndarray]:
        """Arrays by input name in, by output name out.

        out: the caller's arrays, filled and returned; right dtype, shape and C order, or ShapeError.
        Raises DTypeError for another dtype than the model's, ShapeError for shapes that do not fit, UsageError for names.
        """
        if like is not None:
            raise UnsupportedError("GAF4009: like= is not available in this version", code="GAF4009")
        if not isinstance(inputs, dict):
            raise UsageError(f"GAF1102: run() takes a dict of arrays by input name, not {type(inputs).__name__}", code="GAF1102",
                             remedy="call the model itself to give arrays by position: model(x)")
        if inputs.keys() != self._names:
            check_names(inputs, self.input_names)
        arrays, copies = [], 0
        for name, dtype in zip(self.input_names, self._dtypes):
            array, copied = as_array(name, inputs[name], dtype)
            arrays.append(array)
            copies += copied
        outs = self._outputs(out) if out is not None else []
        results, latency, moved, kernels, fallbacks = self._native.run(arrays, self._dtypes, outs, self._out_dtypes if outs else [])
        self._last_run = latency, copies + moved, kernels, fallbacks
        if out is not None:
            return {name: out[name] for name in self.output_names}
        return dict(zip(self.output_names, map(from_native, results)))

    def _outputs(self, out: dict[str, np.ndarray]) -> list[np.ndarray]:
        arrays = []
        for name, dtype in zip(self.output_names, self._out_dtypes):
            if name not in out:
                raise UsageError(f"GAF3104: out= lacks output '{name}'", code="GAF3104")
            a = out[name]
            if not isinstance(a, np.ndarray) or not (a.flags.carray or (a.flags.c_contiguous and a.flags.writeable)):
                raise ShapeError(f"GAF3102: output '{name}' needs a writable array in C order", code="GAF3102")
            arrays.append(as_array(name, a, dtype, "output")[0])
        return arrays

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """One output gives an array, several a tuple. Torch tensors in give torch tensors out."""
        if len(args) > len(self.input_names):
            raise UsageError(f"GAF3103: the model takes {len(self.input_names)} inputs, got {len(args)}", code="GAF3103")
        inputs = dict(zip(self.input_names, args))
        for name, value in kwargs.items():
            if name in inputs:
                raise UsageError(f"GAF3104: input '{name}' is given twice", code="GAF3104")
            inputs[name] = value
        torch_in = any(type(v).__module__.split(".")[0] == "torch" for v in inputs.values())
        if torch_in:
            inputs = {k: v.detach().numpy() if hasattr(v, "detach") else v for k, v in inputs.items()}
        results = list(self.run(inputs).values())
        if torch_in:
            import torch
            results = [torch.from_numpy(r) for r in results]
        return results[0] if len(results) == 1 else tuple(results)

    def stats(self) -> dict[str, int]:
        """kernels, compiled (since load), cache_hits, allocations (distinct intermediate buffers), externs."""
        return self._native.stats()

    def profile(self, inputs: dict[str, Any]) -> list[tuple[str, float]]:
        """Microseconds of each step of one run, in order."""
        check_names(inputs, self.input_names)
        arrays = [as_array(n, inputs[n], d)[0] for n, d in zip(self.input_names, self._dtypes)]
        return self._native.profile(arrays, self._dtypes)

    def save(self, path: str) -> None:
        """Offline models come with a later version: UnsupportedError."""
        raise UnsupportedError("GAF4009: offline models are not available in this version", code="GAF4009",
                               remedy="save the fused graph: gaf.save(model.graph, 'model.onnx')")

    def __reduce__(self) -> Any:
        raise TypeError("a compiled model holds machine code and cannot be pickled; save its graph with gaf.save and compile it again")

    def __repr__(self) -> str:
        return f"<CompiledModel {self.graph.name}: {self.stats()['kernels']} kernels>"


def compile(model: Any, config: FusionConfig | None = None, **overrides: Any) -> CompiledModel:
    """Plans, generates code and makes the model ready to run.

    model: whatever load_model takes. Settings as in FusionConfig, also as keyword arguments.
    """
    if isinstance(model, Graph) and model._planned is not None and config is None:
        config = model._config
    config = merged(config, overrides)
    graph = load_model(model)
    native = _gaf.compile(graph._model, config._layer())
    return CompiledModel(Graph(graph._model, native.planned(), config), native)


class DebugView:
    """What stands behind a compiled model or a fused graph: graph(s), report, generated text by kernel name."""

    def __init__(self, graph: Graph, sources: dict[str, str]) -> None:
        self.graph, self.graphs, self.sources = graph, [graph], sources

    @property
    def report(self) -> Report:
        """What was decided and why."""
        assert self.graph.report is not None
        return self.graph.report

    def save(self, directory: str) -> None:
        """graph.txt, report.txt, report.json and one file a kernel."""
        os.makedirs(directory, exist_ok=True)
        files = {"graph.txt": str(self.graph) + "\n", "report.txt": self.report.text(), "report.json": self.report.json() + "\n"}
        for name, text in self.sources.items():
            files[re.sub(r"[^A-Za-z0-9_]", "_", name) + ".kir"] = text
        for name, text in files.items():
            with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
                f.write(text)


def debug_view(compiled: CompiledModel | Graph) -> DebugView:
    """The view of a compiled model, or of a graph from fuse() (which is compiled for it)."""
    model = compiled if isinstance(compiled, CompiledModel) else compile(compiled)
    return DebugView(model.graph, dict(model._native.sources()))


get_debug_view = debug_view
