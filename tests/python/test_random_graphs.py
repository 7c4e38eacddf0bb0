"""Random graphs (random_graphs.py) under the properties that hold of every model, and the same under other settings. A failure is
shrunk and printed as ONNX text with how to run it again. GAF_RANDOM_SEED is the first seed, GAF_RANDOM_COUNT how many graphs follow it,
GAF_RANDOM_CONFIG the one config to use."""

import os
import pathlib
import tempfile
import traceback
from dataclasses import dataclass

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402

import graph_autofusion as gaf  # noqa: E402
import random_graphs  # noqa: E402
import report_sums  # noqa: E402
from graph_autofusion import _gaf  # noqa: E402
from random_builder import Case, interpret  # noqa: E402

FIRST = int(os.environ.get("GAF_RANDOM_SEED", "0"))
COUNT = int(os.environ.get("GAF_RANDOM_COUNT", "48"))
BATCH = 8  # graphs a test
CPU = pathlib.Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""

# Settings for every graph; a graph is planned with the first and one of the others. `free`: no dim is a number that may be free.
CONFIGS = {
    "plain": {},
    "unfused": {"level": 0},
    "aggressive": {"strategy": "aggressive"},
    "conservative": {"strategy": "conservative"},
    "free": {},
    "sse": {"target": "x86-64-sse"},
    "pairs": {"max_fusion_size": 2},
}
if " avx2 " in CPU:
    CONFIGS["avx2"] = {"target": "x86-64-avx2"}
if " avx512f " in CPU:
    CONFIGS["avx512"] = {"target": "x86-64-avx512"}


@dataclass
class Failure:
    """What does not hold of a case: the property's name, which shrinking keeps, and what was seen."""

    name: str
    seen: str


class Broken(Exception):
    """Raised where a property does not hold."""


def hold(condition, name, seen=""):
    if not condition:
        raise Broken(name, str(seen)[:2000])


# ---- properties ----------------------------------------------------------------------------------------------------------------


def check(case, config, runtime=True):
    """The first property that does not hold of the case under the config, or None."""
    try:
        settings = {"threads": 1, **CONFIGS[config]}
        compiled = gaf.compile(case.model, **settings)
        before = {k: a.copy() for k, a in case.feed.items()}
        got = compiled.run(case.feed)
        equals_the_definition(compiled.graph, case, got)
        hold(same_bits(case.feed, before), "inputs stay as they are")
        hold(same_bits(got, compiled.run(case.feed)), "a second run gives the same bits")
        hold(compiled.stats()["externs"] == 0, "no extern", [n for n in compiled.report.nodes.items() if n[1]["fate"] == "extern"])
        one_fate_a_node(case, compiled.report)
        if config == "plain":
            hold(gaf.explain(case.model, **settings).json() == gaf.explain(case.model, **settings).json(), "the same plan twice")
            hold(gaf.compare(case.model, case.feed, gaf.FusionConfig(**settings)).verdict == "pass", "gaf.compare passes")
            pair = gaf.compile(case.model, **{**settings, "threads": 2})
            hold(same_bits(got, pair.run(case.feed)), "the same bits for two threads")
            reloads(case, settings, compiled, got)
        if runtime and config == "plain":
            equals_onnxruntime(compiled.graph, case, got)
    except Broken as e:
        return Failure(*e.args)
    except Exception as e:
        return Failure(f"no error ({getattr(e, 'code', '')})", repr(e))
    return None


def groups(compiled):
    return sorted(sorted(g["original_nodes"]) for g in compiled.report.groups)


def same_bits(a, b):
    return all(a[k].dtype == b[k].dtype and a[k].shape == b[k].shape and a[k].tobytes() == b[k].tobytes() for k in a)


def equals_the_definition(graph, case, got):
    for i, (o, want) in enumerate(zip(graph.outputs, interpret(case.model, case.feed))):
        row = _gaf.difference(graph._model, i, np.asarray(want, order="C"), np.asarray(got[o.name], order="C"), -1.0, -1.0)
        hold('"mismatches":0' in row, "fused equals the definition", row)


def one_fate_a_node(case, report):
    try:
        report_sums.check(case.model, report)
    except AssertionError as e:
        raise Broken("the report accounts for every node", traceback.format_exc(limit=-1)) from e


def reloads(case, settings, compiled, got):
    """The fused file and the graph's text mean the same model, and fusing the file again changes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("onnx", "gaf"):
            path = os.path.join(folder, "again." + suffix)
            gaf.save(compiled, path)
            again = gaf.compile(path, **settings)
            hold(same_bits(got, again.run(case.feed)), f"the same bits from the fused .{suffix} file")
            if suffix == "onnx":
                onnx.checker.check_model(path, full_check=True)
                hold(groups(again) == groups(compiled), "the fused file has the same groups")


def equals_onnxruntime(graph, case, got):
    """Where ONNX Runtime has all the ops. Its own approximations of functions are coarser than ours."""
    try:
        import onnxruntime as ort
    except ImportError:
        return
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        wants = ort.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run([o.name for o in graph.outputs], case.feed)
    except Exception as e:
        if "NOT_IMPLEMENTED" in str(e) or "NotImplemented" in type(e).__name__:
            return
        raise Broken("ONNX Runtime runs it", repr(e)) from e
    for o, want in zip(graph.outputs, wants):
        if want.dtype.kind == "f":
            scale = max(1.0, float(np.abs(want).max(initial=0)))
            hold(want.shape == got[o.name].shape and np.allclose(want, got[o.name], rtol=0, atol=1e-4 * scale), "fused equals ONNX Runtime",
                 f"{o.name}: {want.shape} {got[o.name].shape}" + (f" {np.abs(want - got[o.name]).max()}" if want.shape == got[o.name].shape else ""))
        else:
            hold(np.array_equal(want, got[o.name]), "fused equals ONNX Runtime", o.name)


# ---- running -------------------------------------------------------------------------------------------------------------------


def drawn(seed, config):
    """The case of a seed, with all that may be free left so under "free", some of it under "plain", nothing elsewhere."""
    case = random_graphs.make(seed)
    if config == "free":
        return case
    rng = np.random.default_rng(seed)
    kept = {d.dim_param for i in case.model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param and rng.random() < 0.5}
    return case.bound(lambda name: config == "plain" and seed % 3 == 0 and name in kept)


def configs_of(seed):
    if "GAF_RANDOM_CONFIG" in os.environ:
        return [os.environ["GAF_RANDOM_CONFIG"]]
    others = list(CONFIGS)[1:]
    return ["plain", others[seed % len(others)]]


def told(seed, config, failure, fails):
    """The text of a failure: what it is, where it came from, the smallest model that shows it."""
    small = random_graphs.shrink(drawn(seed, config), fails)
    last = check(small, config)
    return (f"{failure.name}: {failure.seen}\nseed {seed}, config {config} {CONFIGS[config]}; again: GAF_RANDOM_SEED={seed} GAF_RANDOM_COUNT=1 "
            f"GAF_RANDOM_CONFIG={config} python -m pytest tests/python/test_random_graphs.py -k graphs_hold\n"
            f"shrunk ({last.seen if last else ''}):\n{random_graphs.text(small)}")


@pytest.fixture(scope="module", autouse=True)
def own_settings(tmp_path_factory):
    """No settings of the caller's; one cache for all graphs of the run."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("AUTOFUSION_", "CANN_GRAPH_FUSION")):
                patch.delenv(name)
        patch.setenv("AUTOFUSION_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("AUTOFUSION_LOG_LEVEL", "OFF")
        yield


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_random_graphs_hold(first):
    texts = []
    for seed in range(first, min(first + BATCH, FIRST + COUNT)):
        for config in configs_of(seed):
            if failure := check(drawn(seed, config), config):
                texts.append(told(seed, config, failure, lambda c: (f := check(c, config)) is not None and f.name == failure.name))  # noqa: B023
    assert not texts, "\n\n".join(texts)


# ---- the shrinker ----------------------------------------------------------------------------------------------------------------


def test_shrinking_ends_at_the_fault():
    """A planted property: no model may have a Softmax that reads a sum, with more than three elements a row."""
    node, rng = helper.make_node, np.random.default_rng(3)
    nodes = [node("Relu", ["x"], ["a"]), node("MatMul", ["a", "w"], ["m"]), node("Add", ["m", "c"], ["s"]), node("Neg", ["s"], ["other"]),
             node("Softmax", ["s"], ["p"], axis=-1), node("Tanh", ["p"], ["t"]), node("Mul", ["t", "m"], ["y"])]
    tensor, floats = helper.make_tensor_value_info, rng.standard_normal
    weights = [onnx.numpy_helper.from_array(floats(shape).astype(np.float32), name) for name, shape in (("w", (16, 33)), ("c", (33,)))]
    graph = helper.make_graph(nodes, "g", [tensor("x", 1, ["n", 16])], [tensor("y", 1, [None] * 2), tensor("other", 1, [None] * 2)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def fails(case):
        sums = {n.output[0] for n in case.model.graph.node if n.op_type == "Add"}
        values = random_graphs.values_of(case)
        return any(n.op_type == "Softmax" and n.input[0] in sums and values[n.input[0]].shape[-1] > 3 for n in case.model.graph.node)

    case = Case(model, {"x": floats((7, 16)).astype(np.float32)})
    assert fails(case)
    small = random_graphs.shrink(case, fails)
    assert fails(small) and [n.op_type for n in small.model.graph.node] == ["Add", "Softmax"]
    assert {v.shape for v in small.feed.values()} == {(1, 4)} and "Softmax" in random_graphs.text(small)


def test_a_seed_is_a_graph():
    one, two = random_graphs.make(5), random_graphs.make(5)
    assert one.model.SerializeToString() == two.model.SerializeToString() and same_bits(one.feed, two.feed)
