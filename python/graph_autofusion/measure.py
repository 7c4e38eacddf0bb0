"""Comparing with a reference, and timing fused against unfused."""
from __future__ import annotations

import json
import os
import time
from typing import Any

import numpy as np

from . import _gaf
from .arrays import from_native
from .compiled import compile as compile_
from .config import FusionConfig, merged
from .errors import UsageError
from .graph import Graph, load_model, ordered, random_inputs


class _Document:
    """A JSON document whose keys are attributes."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = tree

    def __getattr__(self, name: str) -> Any:
        try:
            return self._tree[name]
        except KeyError:
            raise AttributeError(name) from None

    def json(self) -> str:
        """The document as text."""
        return json.dumps(self._tree)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._tree.get('verdict', '')}>"


class CompareReport(_Document):
    """gaf.compare/1: reference, verdict (pass | fail), outputs, kernels."""


class BenchReport(_Document):
    """gaf.bench/1: unfused_us, fused_us, speedup, speedup_ci95, verdict (faster | same | slower), baselines."""


def _feed(graph: Graph, inputs: dict[str, Any] | None) -> dict[str, Any]:
    return inputs if inputs is not None else random_inputs(graph)


def _onnxruntime(graph: Graph, feed: dict[str, Any], threads: int) -> Any:
    """A session on the model's original file, its outputs in the model's order."""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads or len(os.sched_getaffinity(0))
    session = ort.InferenceSession(graph._model.source(), options, providers=["CPUExecutionProvider"])
    return session, (lambda: session.run([o.name for o in graph.outputs], feed))


def compare(model: Any, inputs: dict[str, Any] | None = None, config: FusionConfig | None = None, *, reference: str = "interp",
            per_kernel: bool = False, rtol: float = -1.0, atol: float = -1.0) -> CompareReport:
    """Fused against a reference: interp (each op by its definition), unfused (one kernel a node) or onnxruntime.

    rtol, atol: negative means those of the coarsest float type that an output was computed in, which a cast to a wider one keeps.
    """
    graph, config = load_model(model), merged(config, {})
    feed = _feed(graph, inputs)
    arrays, dtypes = ordered(graph, feed)
    if reference != "onnxruntime":
        return CompareReport(json.loads(_gaf.compare(graph._model, config._layer(), arrays, dtypes, reference, per_kernel, rtol, atol)))
    want = _onnxruntime(graph, feed, 1)[1]()
    got = compile_(graph, config).run(feed)
    rows = [json.loads(_gaf.difference(graph._model, i, np.ascontiguousarray(w), np.ascontiguousarray(got[o.name]), rtol, atol))
            for i, (o, w) in enumerate(zip(graph.outputs, want))]
    verdict = "fail" if any(r["mismatches"] for r in rows) else "pass"
    return CompareReport({"schema": "gaf.compare/1", "reference": reference, "verdict": verdict, "trials": 1, "kernels": [], "outputs": rows})


def bench(model: Any, inputs: dict[str, Any] | None = None, config: FusionConfig | None = None, *, runs: int = 50, warmup: int = 5,
          min_time: float = 1.0, baseline: str | None = None) -> BenchReport:
    """Fused against unfused, interleaved; a baseline (onnxruntime) is timed in a block of its own with the same inputs."""
    if runs < 1:
        raise UsageError(f"GAF1102: runs={runs} is not a whole number of at least 1", code="GAF1102")
    graph, config = load_model(model), merged(config, {})
    feed = _feed(graph, inputs)
    arrays, dtypes = ordered(graph, feed)
    tree = json.loads(_gaf.bench(graph._model, config._layer(), arrays, dtypes, runs, warmup, min_time))
    if baseline is not None:
        if baseline != "onnxruntime":
            raise UsageError(f"GAF1102: unknown baseline '{baseline}'", code="GAF1102", remedy="use onnxruntime")
        run = _onnxruntime(graph, feed, tree["threads"])[1]
        for _ in range(max(1, warmup)):
            run()
        times: list[float] = []
        end = time.perf_counter() + min_time
        while len(times) < runs or time.perf_counter() < end:
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e6)
        p10, median, p90 = np.percentile(times, [10, 50, 90])
        tree["baselines"][baseline] = {"median": float(median), "p10": float(p10), "p90": float(p90)}
    return BenchReport(tree)
