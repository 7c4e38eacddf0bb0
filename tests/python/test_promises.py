"""What the user contract promises beyond the plain path: the report accounts for everything, log lines to the byte, who may set
what, arrays of every kind, interrupts, sizes of nothing, and names that a fused file keeps."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import graph_autofusion as gaf  # noqa: E402
import report_sums  # noqa: E402

node = helper.make_node
RNG = np.random.default_rng(11)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(nodes, inputs, outputs, weights=None, opset=17):
    stored = [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, stored), opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model)
    return model


@pytest.fixture(autouse=True)
def own_settings(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("AUTOFUSION_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AUTOFUSION_CACHE_DIR", str(tmp_path / "cache"))


def conv_net():
    """Layouts change on the way: nodes appear that the file does not have."""
    nodes = [node("Conv", ["x", "w1"], ["c1"], "conv1", pads=[1, 1, 1, 1]), node("BatchNormalization", ["c1", "s", "b", "m", "v"], ["n1"], "bn1"), node("Relu", ["n1"], ["r1"], "relu1"),
             node("MaxPool", ["r1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]), node("Conv", ["p1", "w2"], ["c2"], "conv2"), node("Sigmoid", ["c2"], ["g2"], "gate2"),
             node("Mul", ["c2", "g2"], ["u2"], "mul2"), node("GlobalAveragePool", ["u2"], ["a"], "mean"), node("Flatten", ["a"], ["f"], "flat"), node("Gemm", ["f", "w3", "b3"], ["y"], "fc", transB=1)]
    weights = {"w1": floats(8, 3, 3, 3), "s": floats(8), "b": floats(8), "m": floats(8), "v": np.abs(floats(8)) + 1, "w2": floats(16, 8, 3, 3), "w3": floats(10, 16), "b3": floats(10)}
    return model_of(nodes, [value("x", ["n", 3, 20, 20])], [value("y", ["n", 10])], weights)


def attention():
    nodes = [node("LayerNormalization", ["x", "s", "b"], ["n"], "norm", axis=-1), node("MatMul", ["n", "wq"], ["q"], "query"), node("MatMul", ["n", "wk"], ["k"], "key"), node("MatMul", ["n", "wv"], ["v"], "value"),
             node("Transpose", ["k"], ["kt"], "turn", perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["qk"], "scores"), node("Mul", ["qk", "scale"], ["sc"], "scale0"), node("Softmax", ["sc"], ["p"], "weights", axis=-1),
             node("MatMul", ["p", "v"], ["o"], "mix"), node("Add", ["o", "x"], ["r"], "residual"), node("Identity", ["r"], ["y"], "out")]
    weights = {"s": floats(32), "b": floats(32), "wq": floats(32, 32), "wk": floats(32, 32), "wv": floats(32, 32), "scale": np.array(0.17, np.float32)}
    return model_of(nodes, [value("x", [2, "t", 32])], [value("y", [2, "t", 32])], weights)


def with_extern():
    """TopK has no kernel; a constant branch is folded; a value has several readers."""
    nodes = [node("Add", ["one", "two"], ["three"], "fold0"), node("Mul", ["x", "three"], ["a"], "mul0"), node("Relu", ["a"], ["r"], "relu0"), node("TopK", ["r", "k"], ["t", "i"], "top0"),
             node("Neg", ["t"], ["y"], "neg0"), node("ReduceSum", ["r", "axes"], ["z"], "sum0", keepdims=1), node("Exp", ["r"], ["w"], "exp0")]
    weights = {"one": np.float32([1]), "two": np.float32([2]), "k": np.int64([3]), "axes": np.int64([1])}
    return model_of(nodes, [value("x", [16, 24])], [value("y", [16, 3]), value("z", [16, 1]), value("w", [16, 24])], weights)


def two_chains():
    nodes = [node("MatMul", ["x", "w"], ["m"], "mm0"), node("Add", ["m", "b"], ["a"], "bias0"), node("Relu", ["a"], ["y"], "relu0"), node("Softmax", ["z"], ["s"], "soft0", axis=-1), node("Tanh", ["s"], ["u"], "tanh0")]
    return model_of(nodes, [value("x", [64, 64]), value("z", [64, 96])], [value("y", [64, 32]), value("u", [64, 96])], {"w": floats(64, 32), "b": floats(32)})


def looked_through():
    """A reduction reads through a Transpose that a MatMul needs; a size and the name of a constant are nodes that go on the way."""
    nodes = [node("Exp", ["x"], ["e"], "exp0"), node("Transpose", ["e"], ["t"], "turn", perm=[1, 0]), node("MatMul", ["e", "t"], ["m"], "mm0"), node("ReduceMin", ["t"], ["least"], "least0", keepdims=0),
             node("Shape", ["t"], ["s"], "size0"), node("Identity", ["s1"], ["s2"], "same"), node("Reshape", ["m", "s2"], ["flat"], "flat0"), node("Softmax", ["flat"], ["y"], "soft0", axis=-1), node("Cast", ["s"], ["z"], "cast0", to=1)]
    return model_of(nodes, [value("x", [24, 40])], [value("y", [4, 144]), value("least", []), value("z", [2])], {"s1": np.int64([4, 144])})


MODELS = [conv_net, attention, with_extern, two_chains, looked_through]

def with_default():
    """y = relu(x) * scale + shift; scale is an input with a default, shift a plain constant."""
    nodes = [node("Relu", ["x"], ["r"], "relu0"), node("Mul", ["r", "scale"], ["m"], "mul0"), node("Add", ["m", "shift"], ["y"], "add0")]
    return model_of(nodes, [value("x", [3, 4]), value("scale", [4])], [value("y", [3, 4])], {"scale": np.float32([1, 2, 3, 4]), "shift": np.float32([5])})


def test_the_tolerance_is_that_of_the_type_computed_in():
    """A float32 sum that is cast to float64 is no more exact for it; numbers given in float32 and summed in float64 are."""
    nodes = [node("ReduceSum", ["x"], ["s"], "sum0", keepdims=0), node("Cast", ["s"], ["d"], "widen", to=11), node("Neg", ["d"], ["late"], "neg0"),
             node("Cast", ["x"], ["w"], "first", to=11), node("ReduceSum", ["w"], ["early"], "sum1", keepdims=0), node("Cast", ["s"], ["half"], "narrow", to=10), node("Cast", ["half"], ["again"], "back", to=1)]
    model = model_of(nodes, [value("x", [40, 50])], [value("late", [], 11), value("early", [], 11), value("again", [])])
    x = floats(40, 50)
    for reference in ("interp", "unfused", "onnxruntime"):
        if reference == "onnxruntime":
            pytest.importorskip("onnxruntime")
        report = gaf.compare(model, {"x": x}, reference=reference)
        assert report.verdict == "pass" and [o["rtol"] for o in report.outputs] == [1.3e-6, 1e-7, 1e-3]
    strict = gaf.compare(model, {"x": x}, rtol=1e-12, atol=0.0)
    assert [o["rtol"] for o in strict.outputs] == [1e-12] * 3


def test_a_default_may_be_given_at_run_time(tmp_path):
    model, x = with_default(), floats(3, 4)
    relu = np.maximum(x, 0)
    plain = gaf.load_model(model)
    assert [i.name for i in plain.inputs] == ["x"]
    np.testing.assert_allclose(gaf.compile(plain).run({"x": x})["y"], relu * np.float32([1, 2, 3, 4]) + 5, rtol=1e-6)
    onnx.save(model, tmp_path / "m.onnx")
    for source in (model, model.SerializeToString(), tmp_path / "m.onnx"):
        graph = gaf.load_model(source, overridden=["scale"])
        assert [(i.name, i.shape) for i in graph.inputs] == [("x", (3, 4)), ("scale", (4,))]
        compiled = gaf.compile(graph)
        for scale in (np.float32([4, 3, 2, 1]), np.float32([0, 1, 0, 1])):
            np.testing.assert_allclose(compiled.run({"x": x, "scale": scale})["y"], relu * scale + 5, rtol=1e-6)
        with pytest.raises(gaf.ShapeError, match="'scale' missing"):
            compiled.run({"x": x})
    for name, words in (("shift", "lists it among its inputs"), ("scales", "unknown input 'scales'")):
        with pytest.raises(gaf.ModelError, match=words) as e:
            gaf.load_model(model, overridden=[name])
        assert e.value.code == "GAF3104"
    with pytest.raises(gaf.UsageError, match="overridden=\\['scale'\\]"):
        gaf.load_model(model, overridden="scale")
    with pytest.raises(gaf.UsageError, match="not for a Graph"):
        gaf.load_model(plain, overridden=["scale"])



# ---- the report ------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("W1", "W2", "W4", "P26")
@pytest.mark.parametrize("strategy", ["conservative", "balanced", "aggressive"])
@pytest.mark.parametrize("make", MODELS, ids=lambda m: m.__name__)
def test_the_report_adds_up(make, strategy):
    model = make()
    report = gaf.explain(model, strategy=strategy)
    report_sums.check(model, report)
    totals = report.totals
    assert totals["ops_before"] == gaf.load_model(model).num_ops
    assert totals["ops_after"] == gaf.fuse(model, strategy=strategy).num_ops <= totals["ops_before"]


@pytest.mark.contract("W4")
def test_an_edge_that_a_rewrite_removed_has_its_line():
    model = looked_through()
    report = gaf.explain(model)
    line = next(e for e in report.not_fused if (e["from"], e["to"]) == ("turn", "least0"))
    assert line["reason"] == "no-shared-data" and line["edges"] == [["turn", "least0"]] and line["bytes"] == line["numbers"]["bytes"] == 0
    assert re.search(r"turn -> least0 +no-shared-data +a rewrite gave least0 another operand", report.text())
    assert "not fused: no-shared-data" in report.why("turn", "least0") and report.nodes["same"]["fate"] == "folded"
    assert "no op is at its end: flat0 (Reshape)" in report.why("mm0", "flat0")


@pytest.mark.contract("W4")
@pytest.mark.parametrize("heads, queries, keys, width, fused", [(12, 512, 512, 64, True), (1, 17, 4096, 8, False)])
def test_attention_is_fused_only_where_it_pays(heads, queries, keys, width, fused):
    """Few queries, many keys, one head: laying out the keys costs more than the products, and growth has a cheaper plan."""
    nodes = [node("Transpose", ["k"], ["kt"], "turn", perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["s"], "scores"), node("Softmax", ["s"], ["p"], "weights", axis=-1), node("MatMul", ["p", "v"], ["y"], "mix")]
    model = model_of(nodes, [value("q", [heads, queries, 64]), value("k", [heads, keys, 64]), value("v", [heads, keys, width])], [value("y", [heads, queries, width])], {})
    report = gaf.explain(model, target="x86-64-avx512")
    report_sums.check(model, report)
    assert [g["kind"] for g in report.groups].count("attention") == fused
    line = next((e for e in report.not_fused if (e["from"], e["to"]) == ("weights", "mix")), None)
    assert fused == (line is None)
    if line:
        assert line["reason"] == "gain-below-threshold" and line["numbers"]["fused_us"] > line["numbers"]["unfused_us"]


@pytest.mark.contract("W2")
def test_the_report_has_every_promised_key():
    tree = json.loads(gaf.compile(two_chains()).report.json())
    assert {"schema", "gaf_version", "model", "graph_hash", "target", "threads", "settings", "totals", "groups", "not_fused", "nodes", "rewrites", "passes", "guards", "warnings"} <= set(tree)
    assert {"ops_before", "ops_after", "kernels_before", "kernels_after", "bytes_before", "bytes_after", "predicted_us_before", "predicted_us_after", "measured_us_before", "measured_us_after", "plan_gap",
            "compile_ms", "compiled", "cache_hits", "allocations", "externs"} <= set(tree["totals"])
    assert {"id", "kernel", "nodes", "original_nodes", "kind", "rule", "why", "gain", "bytes_before", "bytes_after", "launches_saved", "predicted_us", "measured_us", "resources", "budget_steps", "compile_ms",
            "cached", "variants", "status", "simulated"} <= set(tree["groups"][0])
    assert tree["groups"][0]["status"] == "fused" and tree["groups"][0]["measured_us"] is None and tree["totals"]["plan_gap"] is None
    assert tree["totals"]["compiled"] == 2 and tree["totals"]["compile_ms"] > 0 and [g["cached"] for g in tree["groups"]] == [False, False]
    assert [g["kind"] for g in tree["groups"]] == ["matmul", "reduction"]
    assert not any(isinstance(x, float) and not math.isfinite(x) for x in tree["totals"].values())
    again = json.loads(gaf.compile(two_chains_again(), cache_dir=os.environ["AUTOFUSION_CACHE_DIR"]).report.json())
    assert again["totals"]["cache_hits"] == 2 and all(g["cached"] for g in again["groups"])


def two_chains_again():
    """The same under other names: kernels do not depend on names."""
    model = two_chains()
    for n in model.graph.node:
        n.name = "other_" + n.name
    return model


@pytest.mark.contract("W1")
def test_the_text_reads_as_promised():
    lines = gaf.explain(two_chains(), threads=1).text().splitlines()
    assert lines[0] == "model model   target host (1 thread)   strategy balanced   level 2"
    assert re.fullmatch(r"ops 5 -> 2   kernels 5 -> 2   bytes \S+ [KM]B -> \S+ [KM]B   predicted \d+\.\d -> \d+\.\d us \(-\d+\.\d %\)", lines[1]), lines[1]
    at = lines.index("    MatMul + BiasAdd + ReLU (mm0 bias0 relu0)")
    assert re.fullmatch(r"g0  matmul_bias_relu_fused   gain \d+\.\d %", lines[at - 1])
    assert lines[at + 1].startswith("    why       ") and lines[at + 2].startswith("    predicted ") and re.search(r"reg \d+ %  ub \d+ %$", lines[at + 2])
    text = gaf.explain(with_extern()).text()
    assert "not fused\n" in text and re.search(r"relu0 -> top0 +not-fusable-op +TopK has no lowering", text)


# ---- log lines ---------------------------------------------------------------------------------------------------------------


def log_of(model, level, **env):
    script = "import sys, graph_autofusion as gaf; gaf.compile(sys.stdin.buffer.read())"
    done = subprocess.run([sys.executable, "-c", script], input=model.SerializeToString(), capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8", "AUTOFUSION_LOG_LEVEL": level, **env})
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b""
    return done.stderr.decode().splitlines()


@pytest.mark.contract("L1", "L2", "L3", "E4")
def test_log_lines_come_group_by_group(tmp_path):
    model = two_chains()
    lines = [line for line in log_of(model, "DEBUG") if not line.startswith("[AUTOFUSION] Not fused")]
    patterns = []
    for chain, kernel in (("MatMul → BiasAdd → ReLU", "matmul_bias_relu_fused"), ("Softmax → Tanh", "softmax_tanh_fused")):
        patterns += [re.escape(f"[AUTOFUSION] Found fusable subgraph: {chain}"), r"\[AUTOFUSION\] Resource estimate: reg=\d+%, ub=\d+% → within budget",
                     re.escape(f"[AUTOFUSION] SuperKernel generated: {kernel}")]
    assert len(lines) == len(patterns)
    where = [next(i for i, line in enumerate(lines) if re.fullmatch(p, line)) for p in patterns]
    assert where[0] < where[2] and where[3] < where[5] and where[0] < where[3] and "Resource" in lines[where[0] + 1] and "Resource" in lines[where[3] + 1], lines


@pytest.mark.contract("E4", "L1")
@pytest.mark.parametrize("level, count", [("debug", 4), ("0", 4), ("Info", 4), ("1", 4), ("WARNING", 0), ("2", 0), ("error", 0), ("OFF", 0), ("4", 0)])
def test_log_levels(level, count):
    lines = [line for line in log_of(two_chains(), level) if "Resource" not in line and "Not fused" not in line]
    assert len(lines) == count


@pytest.mark.contract("L1", "L2")
def test_log_arrows_without_unicode():
    for env in ({"AUTOFUSION_LOG_ASCII": "1"}, {"LC_ALL": "C"}):
        text = "\n".join(log_of(two_chains(), "DEBUG", **env))
        assert "Found fusable subgraph: Softmax -> Tanh" in text and "-> within budget" in text and "→" not in text


@pytest.mark.contract("E4")
def test_fallbacks_are_told_once_an_op_type():
    nodes = [node("TopK", ["x", "k"], ["t", "i"], "top0"), node("Neg", ["t"], ["n"], "neg0"), node("TopK", ["n", "k"], ["y", "j"], "top1")]
    model = model_of(nodes, [value("x", [16, 24])], [value("y", [16, 3])], {"k": np.int64([3])})
    assert log_of(model, "WARNING") == ["[AUTOFUSION] Fallback: top0 (TopK): extern, no lowering"]


@pytest.mark.contract("E4")
def test_log_formats_and_python_logging():
    records = [json.loads(line) for line in log_of(two_chains(), "INFO", AUTOFUSION_LOG_FORMAT="json")]
    assert all({"level", "time", "event"} <= set(r) for r in records)
    assert re.match(r"\[INFO\] GAF\(\d+,.*\):\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}\.\d{3} \[.*\]\d+ ", log_of(two_chains(), "INFO", AUTOFUSION_LOG_FORMAT="cann")[0])
    script = ("import sys, logging, graph_autofusion as gaf; logging.basicConfig(level=logging.INFO, stream=sys.stdout, format='%(name)s %(levelname)s %(message)s');"
              "gaf.use_python_logging(); gaf.compile(sys.stdin.buffer.read())")
    done = subprocess.run([sys.executable, "-c", script], input=two_chains().SerializeToString(), capture_output=True, env={**os.environ, "AUTOFUSION_LOG_LEVEL": "INFO", "LC_ALL": "C.UTF-8"})
    assert done.stderr == b"" and "graph_autofusion INFO" in done.stdout.decode() and "Found fusable subgraph: Softmax" in done.stdout.decode()


# ---- settings ----------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("E10", "P4")
def test_settings_are_read_when_they_are_made(monkeypatch):
    monkeypatch.setenv("AUTOFUSION_STRATEGY", "aggressive")
    c = gaf.FusionConfig(level=1)
    assert gaf.settings(c)["strategy"] == ("aggressive", "env AUTOFUSION_STRATEGY") and gaf.settings(c)["level"] == ("1", "config")
    monkeypatch.setenv("AUTOFUSION_STRATEGY", "fast")
    with pytest.raises(gaf.ConfigError) as e:
        gaf.FusionConfig()
    assert e.value.code == "GAF1201" and "one of balanced, aggressive, conservative" in str(e.value)
    assert gaf.FusionConfig(strategy="balanced").strategy == "balanced"  # a field set hides the lower layer
    monkeypatch.delenv("AUTOFUSION_STRATEGY")
    monkeypatch.setenv("AUTOFUSION_STRATGY", "balanced")
    with pytest.warns(UserWarning, match="did you mean 'AUTOFUSION_STRATEGY'"):
        gaf.FusionConfig()
    monkeypatch.delenv("AUTOFUSION_STRATGY")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gaf.FusionConfig()


@pytest.mark.contract("E10")
def test_off_wins_inside_the_environment(monkeypatch):
    monkeypatch.setenv("CANN_GRAPH_FUSION", "2")
    monkeypatch.setenv("AUTOFUSION_ENABLE", "off")
    assert gaf.settings()["level"] == ("0", "env AUTOFUSION_ENABLE")
    monkeypatch.setenv("AUTOFUSION_ENABLE", "1")
    monkeypatch.setenv("CANN_GRAPH_FUSION", "0")
    assert gaf.settings()["level"] == ("0", "env CANN_GRAPH_FUSION")
    assert gaf.settings(gaf.FusionConfig(level=2))["level"] == ("2", "config")


@pytest.mark.contract("P4")
def test_settings_that_come_later_say_so():
    for name, value_ in {"measure": "on", "rules": ["r.yaml"], "groups": [["a"]], "debug_dir": "d", "precision": "mixed_float16"}.items():
        with pytest.raises(gaf.ConfigError) as e:
            gaf.FusionConfig(**{name: value_})
        assert e.value.code == "GAF4009"
    with pytest.raises(TypeError):
        gaf.FusionConfig("balanced")


@pytest.mark.contract("P4", "P5")
def test_what_settings_do():
    model, x = two_chains(), {"x": floats(64, 64), "z": floats(64, 96)}
    want = gaf.compile(model, level=0).run(x)
    for settings, kernels in (({"extern_ops": ["Softmax"]}, 2), ({"extern_ops": ["tanh0"]}, 2), ({"max_fusion_size": 2}, 3), ({"max_fusion_depth": 2}, 3), ({"cost_threshold": 100.0}, 5), ({"cache_dir": ""}, 2)):
        compiled = gaf.compile(model, **settings)
        assert compiled.stats()["kernels"] == kernels, settings
        for name, y in compiled.run(x).items():
            np.testing.assert_allclose(y, want[name], rtol=1e-5, atol=1e-5)
    assert gaf.compile(model, cache_dir="").stats()["cache_hits"] == 0
    with pytest.raises(gaf.UnsupportedError) as e:
        gaf.compile(with_extern(), strict=True)
    assert e.value.code.startswith("GAF400") and e.value.node == "top0"
    op_by_op = gaf.compile(model, enable_superkernel=False)
    assert op_by_op.graph.num_ops == 2 and op_by_op.stats()["compiled"] == 0


# ---- arrays ------------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("P24")
def test_arrays_of_every_kind():
    nodes = [node("Mul", ["x", "k"], ["m"], "mul0"), node("Add", ["m", "x"], ["y"], "add0")]
    compiled = gaf.compile(model_of(nodes, [value("x", ["n", 6]), value("k", [])], [value("y", ["n", 6])]))
    x = floats(4, 6)
    want = x * np.float32(2.5) + x
    np.testing.assert_allclose(compiled(x, 2.5), want, rtol=1e-6)
    for strided in (np.asfortranarray(x), floats(8, 12)[::2, ::2], x[::-1]):
        np.testing.assert_array_equal(compiled(strided, 2.5), compiled(np.ascontiguousarray(strided), 2.5))
        compiled(strided, 2.5)
        assert compiled.last_run.copies >= 1
    read_only = x.copy()
    read_only.setflags(write=False)
    np.testing.assert_array_equal(compiled(read_only, 2.5), compiled(x, 2.5))
    misaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 6)
    np.testing.assert_array_equal(compiled(misaligned, 2.5), compiled(x, 2.5))
    own = x.copy()  # the result may land in the input
    compiled.run({"x": own, "k": np.float32(2.5)}, out={"y": own})
    np.testing.assert_allclose(own, want, rtol=1e-6)
    assert compiled.last_run.latency_us > 0
    with pytest.raises(gaf.ShapeError):
        compiled.run({"x": x, "k": 2.5}, out={"y": np.empty((4, 7), np.float32)})
    with pytest.raises(gaf.DTypeError):
        compiled.run({"x": x, "k": 2.5}, out={"y": np.empty((4, 6), np.float64)})
    with pytest.raises(gaf.GafError):
        compiled(x)


@pytest.mark.contract("P24", "N6")
@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint8", "int32", "int64", "uint64"])
def test_dtypes_come_out_as_they_went_in(dtype):
    of = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [node("Add", ["x", "x"], ["d"], "add0"), node("Max", ["d", "c"], ["y"], "max0")]
    compiled = gaf.compile(model_of(nodes, [value("x", ["n"], of)], [value("y", ["n"], of)], {"c": np.array([3], dtype)}))
    x = np.arange(40).astype(dtype)
    y = compiled(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, np.maximum(x + x, np.array([3], dtype)))


@pytest.mark.contract("P24")
def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    nodes = [node("Add", ["x", "x"], ["d"], "add0"), node("Relu", ["d"], ["y"], "relu0")]
    compiled = gaf.compile(model_of(nodes, [value("x", ["n"], TensorProto.BFLOAT16)], [value("y", ["n"], TensorProto.BFLOAT16)]))
    x = floats(33).astype(ml_dtypes.bfloat16)
    y = compiled(x)
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(y.astype(np.float32), np.maximum(2 * x.astype(np.float32), 0))


def test_no_elements():
    for dims, settings in (({}, {}), ({}, {"level": 0}), ({"n": 0}, {})):
        compiled = gaf.compile(gaf.load_model(conv_net(), dims=dims), **settings)
        assert compiled(np.zeros((0, 3, 20, 20), np.float32)).shape == (0, 10)


@pytest.mark.contract("C23")
def test_random_inputs_are_the_same_everywhere(tmp_path):
    onnx.save(two_chains(), tmp_path / "m.onnx")
    a, b, c = (gaf.random_inputs(str(tmp_path / "m.onnx"), n) for n in (7, 7, 8))
    assert all(np.array_equal(a[k], b[k]) and not np.array_equal(a[k], c[k]) for k in a)
    x = a["x"]
    assert x.dtype == np.float32 and x.shape == (64, 64) and abs(x.mean()) < 0.1 and abs(x.std() - 1) < 0.1
    assert [round(float(v), 6) for v in x.ravel()[:3]] == [1.691163, 0.674969, -1.204608]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_interrupts_stop_between_kernels():
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    deep = [node("MatMul", [f"v{i}", "w"], [f"v{i + 1}"]) for i in range(60)]
    compiled = gaf.compile(model_of(deep, [value("v0", [768, 768])], [value("v60", [768, 768])], {"w": floats(768, 768) / 28}), threads=1)
    x = floats(768, 768)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(Stop):
            for _ in range(100):
                compiled(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert np.isfinite(compiled(x)).all()  # and goes on working


def test_a_forked_child_runs_models():
    compiled = gaf.compile(two_chains(), threads=2)
    x = {"x": floats(64, 64), "z": floats(64, 96)}
    want = compiled.run(x)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if all(np.array_equal(want[k], v) for k, v in compiled.run(x).items()) else 1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.contract("P22")
def test_same_bits_for_any_number_of_threads_and_from_the_cache():
    model = attention()
    x = floats(2, 70, 32)
    results = [gaf.compile(model, threads=t)(x) for t in (1, 2, 3)]
    assert all(np.array_equal(results[0], r) for r in results[1:])


# ---- graphs ------------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("P12", "P2")
def test_ops_tell_what_they_are():
    g = gaf.load_model(conv_net(), dims={"n": 2})
    assert g.num_ops == 9 and g.num_kernels == 9  # Flatten is a view
    conv, fc = g.op("conv1"), g.op("fc")
    assert (conv.type, conv.dtype, conv.shape, conv.problem, conv.compute_kind) == ("Conv", "float32", (2, 8, 20, 20), (2, 3, 20, 20, 8, 3, 3), "compute_bound")
    assert conv.flops == 2 * 2 * 8 * 20 * 20 * 27 and fc.problem == (1, 2, 10, 16)
    assert g.op("relu1").compute_kind == "memory_bound" and g.op("relu1").bytes_read == g.op("relu1").bytes_written == 4 * 2 * 8 * 20 * 20
    assert g.op("relu1").original_names == ["relu1"] and {conv.shape: 1}[g.op("relu1").shape] == 1
    assert len(str(g).splitlines()) == len(g.ops) and str(g) == str(gaf.load_model(conv_net(), dims={"n": 2}))
    x = floats(2, 3, 20, 20)
    np.testing.assert_array_equal(g.run({"x": x})["y"], gaf.compile(g)(x))


@pytest.mark.contract("P11", "P10", "C24")
@pytest.mark.parametrize("make", MODELS, ids=lambda m: m.__name__)
def test_a_fused_file_restores_its_groups(make, tmp_path):
    model = make()
    fused = gaf.fuse(model)
    named = lambda groups: {g.kernel: sorted(g.ops) for g in groups}  # noqa: E731
    gaf.save(fused, tmp_path / "f.onnx")
    assert fused.to_onnx() == (tmp_path / "f.onnx").read_bytes()
    metadata = {p.key: p.value for p in onnx.load(tmp_path / "f.onnx").metadata_props}
    assert metadata["gaf.version"] == gaf.__version__ and set(json.loads(metadata["gaf.groups"])) == {g.kernel for g in fused.groups}
    loaded = gaf.load_model(str(tmp_path / "f.onnx"))
    assert named(loaded.groups) == named(fused.groups) == named(gaf.fuse(loaded).groups)
    gaf.save(gaf.fuse(loaded), tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "f.onnx").read_bytes()
    feed = gaf.random_inputs(gaf.load_model(model, dims=dict.fromkeys(["n", "t"][: make in (conv_net, attention)] and [{conv_net: "n", attention: "t"}[make]], 5)), 1)
    for name, y in gaf.compile(model).run(feed).items():
        np.testing.assert_array_equal(gaf.compile(loaded).run(feed)[name], y)
    with pytest.raises(gaf.GafError) as e:
        gaf.save(fused, str(tmp_path / "nowhere" / "f.onnx"))
    assert e.value.code == "GAF8001"


@pytest.mark.contract("P10")
def test_fuse_leaves_its_argument_alone(tmp_path):
    g = gaf.load_model(two_chains())
    text, ops = str(g), g.num_ops
    a, b = gaf.fuse(g), gaf.fuse(g)
    assert (str(g), g.num_ops, g.groups, g.report) == (text, ops, [], None)
    assert str(a) == str(b) and a.report.json() == b.report.json()  # deterministic
    assert a.groups[0].gain > 0 and a.groups[0].status == "fused"


# ---- errors ------------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("P28")
def test_faults_that_are_found_together_are_told_together(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("strategi: balanced\nlevle: 2\n")
    build = os.environ.get("GAF_BUILD", os.path.join(os.path.dirname(__file__), "..", "..", "build", "release"))
    done = subprocess.run([os.path.join(build, "gaf"), "config", "--config", str(path), "--json"], capture_output=True, text=True)
    errors = json.loads(done.stdout)["errors"]
    assert done.returncode == 2 and [(e["code"], e["line"], e["column"]) for e in errors] == [("GAF1202", 1, 1), ("GAF1202", 2, 1)]
    with pytest.raises(gaf.GafError) as e:
        gaf.load_model(model_of([node("Relu", ["x"], ["y"], "r")], [value("x", ["n", 4])], [value("y", ["n", 4])]), dims={"m": 4})
    assert e.value.code == "GAF3104" and e.value.remedy and e.value.details[0]["code"] == "GAF3104"
    for field in ("code", "node", "op_type", "file", "line", "column", "cause", "remedy", "details"):
        assert hasattr(e.value, field)


@pytest.mark.contract("P28")
def test_exception_classes_are_the_usual_ones_too():
    for ours, theirs in ((gaf.UsageError, ValueError), (gaf.ConfigError, ValueError), (gaf.ShapeError, ValueError), (gaf.DTypeError, TypeError), (gaf.UnsupportedError, NotImplementedError),
                         (gaf.CompileTimeout, TimeoutError), (gaf.ExecutionError, RuntimeError)):
        assert issubclass(ours, theirs) and issubclass(ours, gaf.GafError)


@pytest.mark.contract("P28")
def test_an_operator_that_nobody_knows():
    model = helper.make_model(helper.make_graph([node("Foo", ["x"], ["y"], "f", domain="my.ops")], "g", [value("x", [2])], [value("y", [2])]),
                              opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)], ir_version=8)
    with pytest.raises(gaf.UnsupportedError) as e:
        gaf.compile(model)
    assert (e.value.code, e.value.node) == ("GAF4001", "f") and "my.ops::Foo" in str(e.value)


# ---- the package itself ------------------------------------------------------------------------------------------------------


@pytest.mark.contract("P1")
def test_the_package_is_typed():
    pytest.importorskip("mypy")
    from mypy import api

    root = os.path.join(os.path.dirname(__file__), "..", "..")
    out, err, code = api.run(["--config-file", os.path.join(root, "pyproject.toml"), "--cache-dir", os.devnull, os.path.join(root, "python", "graph_autofusion")])
    assert code == 0, out + err


@pytest.mark.contract("P1")
def test_everything_public_is_documented():
    import inspect

    bare = []
    for name in gaf.__all__:
        thing = getattr(gaf, name)
        if not inspect.getdoc(thing):
            bare.append(name)
        if inspect.isclass(thing) and not issubclass(thing, (Exception, tuple)):
            bare += [f"{name}.{m}" for m, f in vars(thing).items() if not m.startswith("_") and (inspect.isfunction(f) or isinstance(f, property)) and not inspect.getdoc(f)]
    assert not bare


@pytest.mark.contract("P28")
def test_slips_of_a_newcomer():
    """One wrong argument each: the class, the code, and what the text must say."""
    model = model_of([node("Relu", ["x"], ["y"], "relu0")], [value("x", ["batch", 4])], [value("y", ["batch", 4])])
    compiled, x = gaf.compile(model), floats(2, 4)
    out = {"y": np.empty((2, 4))}
    slips = [
        (lambda: compiled(), gaf.ShapeError, "GAF3103", "input 'x' missing"), (lambda: compiled(x, x), gaf.UsageError, "GAF3103", "takes 1 input"),
        (lambda: compiled(x.tolist()), gaf.DTypeError, "GAF3107", "x.astype('float32')"), (lambda: compiled(x[0]), gaf.ShapeError, "GAF3102", "[batch,4], got [4]"),
        (lambda: compiled.run(x), gaf.UsageError, "GAF1102", "model(x)"), (lambda: compiled.run({"x": x}, out=out), gaf.DTypeError, "GAF3107", "output 'y'"),
        (lambda: compiled.run({"x": x}, out={}), gaf.UsageError, "GAF3104", "lacks output 'y'"), (lambda: compiled.run({"x": x}, like="dlpack"), gaf.UnsupportedError, "GAF4009", "like="),
        (lambda: gaf.load_model("none.onnx"), gaf.GafError, "GAF8001", "none.onnx"), (lambda: gaf.load_model(None), gaf.UsageError, "GAF1102", "not NoneType"),
        (lambda: gaf.load_model("m.pt2"), gaf.UnsupportedError, "GAF4009", ".pt2"), (lambda: gaf.load_model(model, shapes={"x": 4}), gaf.UsageError, "GAF1102", "shapes="),
        (lambda: gaf.load_model(model, dims={"bath": 4}), gaf.GafError, "GAF3104", "did you mean 'batch'"), (lambda: gaf.load_model(model, shapes={"x": (4, 5)}), gaf.ShapeError, "GAF3102", "[4,5]"),
        (lambda: gaf.compile(model, level=3), gaf.ConfigError, "GAF1102", "0 to 2"), (lambda: gaf.compile(model, target="h100"), gaf.TargetError, "GAF2204", "h100"),
        (lambda: gaf.save(model, "m.pt"), gaf.ConfigError, "GAF1102", ".onnx or .gaf"), (lambda: gaf.compare(model), gaf.ShapeError, "GAF3105", "batch"),
        (lambda: gaf.compare(model, {"x": x}, reference="torch"), gaf.UsageError, "GAF1102", "interp"), (lambda: gaf.bench(model, {"x": x}, runs=0), gaf.UsageError, "GAF1102", "runs"),
        (lambda: gaf.bench(model, {"x": x}, runs=1, min_time=0, baseline="tensorrt"), gaf.UsageError, "GAF1102", "onnxruntime"), (lambda: gaf.explain(model).why("relu"), gaf.ModelError, "GAF3002", "did you mean 'relu0'"),
        (lambda: gaf.explain(model).save("r.pdf"), gaf.ConfigError, "GAF1102", ".txt or .json"), (lambda: gaf.random_inputs(gaf.load_model(model, dims={"batch": 1}), ranges={"q": (0, 1)}), gaf.GafError, "GAF3104", "'q'"),
    ]
    for call, kind, code, text in slips:
        with pytest.raises(kind) as e:
            call()
        assert e.value.code == code and text in str(e.value), str(e.value)
    for call, text in ((lambda: gaf.compile(model, "balanced"), "config is a FusionConfig, not str"), (lambda: gaf.compile(model, stratgy="x"), "did you mean 'strategy'")):
        with pytest.raises(TypeError, match=text):
            call()
