"""The Python package as a user meets it: loading, settings, fusing, compiling, running, reports and errors."""

import json
import os
import pickle
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import onnx.reference  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import graph_autofusion as gaf  # noqa: E402

RNG = np.random.default_rng(7)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def model_of(nodes, inputs, outputs, weights=(), opset=17):
    """inputs, outputs: name -> shape (float32); weights: name -> array."""
    info = lambda values: [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in values.items()]  # noqa: E731
    graph = helper.make_graph(nodes, "g", info(inputs), info(outputs), [numpy_helper.from_array(a, n) for n, a in dict(weights).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model)
    return model


@pytest.fixture(scope="module")
def mlp():
    """y = relu(x @ w + b) with a free batch, and what it computes."""
    w, b = floats(64, 32), floats(32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], "mm0"), helper.make_node("Add", ["m", "b"], ["a"], "bias0"),
             helper.make_node("Relu", ["a"], ["y"], "relu0")]
    model = model_of(nodes, {"x": ["batch", 64]}, {"y": ["batch", 32]}, {"w": w, "b": b})
    return model, lambda x: np.maximum(x @ w + b, 0)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("AUTOFUSION_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AUTOFUSION_CACHE_DIR", str(tmp_path / "cache"))


# ---- loading and looking ------------------------------------------------------------------------------------------------


@pytest.mark.contract("P1")
def test_import_needs_numpy_alone_and_never_fails_for_settings():
    script = """if True:
        import sys
        for name in ("onnx", "onnxruntime", "torch", "ml_dtypes"):
            sys.modules[name] = None
        import graph_autofusion as gaf
        print(gaf.__version__)"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "AUTOFUSION_STRATEGY": "no such"})
    assert (done.returncode, done.stderr) == (0, "") and re.fullmatch(r"\d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.contract("P2", "P3", "P12")
def test_load_model(mlp, tmp_path):
    model, _ = mlp
    onnx.save(model, tmp_path / "m.onnx")
    for source in (model, model.SerializeToString(), str(tmp_path / "m.onnx"), tmp_path / "m.onnx"):
        g = gaf.load_graph(source)
        assert g.num_ops == 3
        assert g.inputs == [("x", "float32", ("batch", 64))] and g.outputs == [("y", "float32", ("batch", 32))]
    assert gaf.load_model is gaf.load_graph and gaf.load_model(g) is g
    assert [op.type for op in g.ops] == ["MatMul", "Add", "Relu"]
    assert g.op("mm0").inputs == ["x", "w"]
    with pytest.raises(KeyError, match="did you mean 'relu0'"):
        g.op("relo0")
    assert gaf.load_model(model, dims={"batch": 4}).inputs[0].shape == (4, 64)
    assert gaf.load_model(model, shapes={"x": (3, -1)}).outputs[0].shape == (3, 32)


@pytest.mark.contract("P4")
def test_config():
    c = gaf.FusionConfig(strategy="aggressive", max_fusion_size=8)
    assert c.strategy == "aggressive" and c.level == 2 and c.max_fusion_depth is None
    assert c.replace(level=1).to_dict() == {**c.to_dict(), "level": 1} and repr(c) == repr(c.to_dict())
    with pytest.raises(TypeError, match="did you mean 'strategy'"):
        gaf.FusionConfig(stratgy="balanced")
    for bad in ({"strategy": "fast"}, {"level": 7}, {"resource_budget": 0}, {"max_fusion_depth": 0}, {"threads": -1}):
        with pytest.raises(gaf.ConfigError):
            gaf.FusionConfig(**bad)
    assert issubclass(gaf.ConfigError, ValueError)


@pytest.mark.contract("E10", "E3")
def test_a_config_field_beats_the_environment_even_at_its_default(monkeypatch):
    monkeypatch.setenv("AUTOFUSION_STRATEGY", "aggressive")
    assert gaf.settings()["strategy"] == ("aggressive", "env AUTOFUSION_STRATEGY")
    assert gaf.settings(gaf.FusionConfig(strategy="balanced"))["strategy"] == ("balanced", "config")
    assert gaf.settings()["level"].origin == "default"


# ---- fusing --------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("P10", "P26", "N1", "N8")
def test_fuse_gives_a_new_graph_and_its_report(mlp):
    g = gaf.load_model(mlp[0])
    f = gaf.fuse(g)
    assert (g.num_ops, g.report) == (3, None)
    assert (f.num_ops, f.num_kernels) == (1, 1)
    assert [(x.kernel, x.ops) for x in f.groups] == [("matmul_bias_relu_fused", ["mm0", "bias0", "relu0"])]
    assert f.report.groups[0]["gain"] > 0 and f.report.totals["ops_before"] == 3


@pytest.mark.contract("P5", "P6")
def test_the_two_switches(mlp):
    model, want = mlp
    assert gaf.fuse(model, enable_autofuse=False).num_ops == 3
    plain = gaf.compile(model, enable_superkernel=False)
    x = floats(5, 64)
    assert plain.stats()["compiled"] == 0
    np.testing.assert_allclose(plain(x), want(x), rtol=1e-5, atol=1e-5)


@pytest.mark.contract("E1")
def test_everything_off(mlp, monkeypatch):
    monkeypatch.setenv("AUTOFUSION_ENABLE", "0")
    f = gaf.fuse(mlp[0])
    assert f.num_ops == 3 and {e["reason"] for e in f.report.not_fused} == {"level-off"}


@pytest.mark.contract("P11")
def test_save(mlp, tmp_path):
    model, want = mlp
    f = gaf.fuse(model)
    for name in ("f.onnx", "f.gaf"):
        gaf.save(f, str(tmp_path / name))
        x = floats(3, 64)
        np.testing.assert_allclose(gaf.compile(str(tmp_path / name))(x), want(x), rtol=1e-5, atol=1e-5)
    onnx.checker.check_model(onnx.load(tmp_path / "f.onnx"), full_check=True)
    with pytest.raises(gaf.ConfigError):
        gaf.save(f, str(tmp_path / "f.pt"))


def pattern_model(name):
    if name == "conv":
        c = 8
        weights = {"w": floats(c, 3, 3, 3), "g": floats(c), "b": floats(c), "m": floats(c), "v": np.abs(floats(c)) + 0.5}
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "conv0", pads=[1, 1, 1, 1]),
                 helper.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["n"], "bn0"), helper.make_node("Relu", ["n"], ["y"], "relu0")]
        return model_of(nodes, {"x": [1, 3, 14, 14]}, {"y": [1, c, 14, 14]}, weights), floats(1, 3, 14, 14)
    nodes = [helper.make_node("LayerNormalization", ["x", "s", "b"], ["n"], "ln0", axis=-1), helper.make_node("Gelu", ["n"], ["y"], "gelu0")]
    return model_of(nodes, {"x": [16, 96]}, {"y": [16, 96]}, {"s": floats(96), "b": floats(96)}, opset=20), floats(16, 96)


@pytest.mark.parametrize("name", [pytest.param("conv", marks=pytest.mark.contract("N9")), pytest.param("norm", marks=pytest.mark.contract("N11"))])
def test_kinds_that_must_fuse(name):
    model, x = pattern_model(name)
    compiled = gaf.compile(model)
    together = [set(g.ops) for g in compiled.graph.groups]
    assert {n.name for n in model.graph.node} in together, str(compiled.report)
    want = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0]
    np.testing.assert_allclose(compiled(x), want, rtol=1e-4, atol=1e-5)


# ---- compiling and running -----------------------------------------------------------------------------------------------


@pytest.mark.contract("P22", "P24", "N6")
def test_compile_and_run(mlp):
    model, want = mlp
    compiled = gaf.compile(model)
    assert (compiled.input_names, compiled.output_names) == (["x"], ["y"])
    for batch in (1, 2, 7, 64):
        x = floats(batch, 64)
        np.testing.assert_allclose(compiled(x), want(x), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(compiled.run({"x": x})["y"], compiled(x=x))
    stats = compiled.stats()
    assert stats["kernels"] == 1 and stats["compiled"] == 1 and stats["externs"] == 0  # four sizes, one kernel
    out = {"y": np.empty((7, 32), np.float32)}
    x = floats(7, 64)
    assert compiled.run({"x": x}, out=out)["y"] is out["y"]
    np.testing.assert_allclose(out["y"], want(x), rtol=1e-5, atol=1e-5)
    assert compiled.last_run.kernels == 1 and compiled.last_run.copies == 0
    turned = np.asfortranarray(x)
    np.testing.assert_array_equal(compiled(turned), compiled(x))


def test_a_second_process_takes_kernels_from_the_cache(mlp):
    gaf.compile(mlp[0])
    assert gaf.compile(mlp[0]).stats()["cache_hits"] == 1


def test_threads_may_share_a_model(mlp):
    model, want = mlp
    compiled = gaf.compile(model)
    inputs = [floats(3 + i, 64) for i in range(4)]
    results = [None] * 4

    def call(i):
        for _ in range(20):
            results[i] = compiled(inputs[i])

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for x, y in zip(inputs, results):
        np.testing.assert_allclose(y, want(x), rtol=1e-5, atol=1e-5)


def test_pickling_is_a_clear_error(mlp):
    with pytest.raises(TypeError, match="save its graph"):
        pickle.dumps(gaf.compile(mlp[0]))


@pytest.mark.contract("P23")
def test_debug_view(mlp, tmp_path):
    view = gaf.debug_view(gaf.compile(mlp[0]))
    assert gaf.get_debug_view is gaf.debug_view
    assert view.graph.num_ops == 1 and view.graphs == [view.graph]
    assert list(view.sources) == ["matmul_bias_relu_fused"] and view.sources["matmul_bias_relu_fused"].startswith("kernel @")
    view.save(str(tmp_path / "view"))
    assert (tmp_path / "view" / "matmul_bias_relu_fused.kir").exists()


# ---- reports -------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("W1", "W2", "W4", "P26")
def test_report_accounts_for_every_node_and_edge(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["a"], "r0"), helper.make_node("Transpose", ["a"], ["t"], "t0", perm=[1, 0]), helper.make_node("MatMul", ["a", "t"], ["m"], "mm0"),
             helper.make_node("Softmax", ["m"], ["s"], "sm0", axis=-1), helper.make_node("TopK", ["s", "k"], ["v", "i"], "top0"), helper.make_node("Neg", ["v"], ["y"], "n0")]
    model = model_of(nodes, {"x": [32, 48]}, {"y": [32, 5]}, {"k": np.array([5], np.int64)})
    report = gaf.explain(model)
    tree = json.loads(report.json())
    assert tree["schema"] == "gaf.report/1" and tree["totals"]["ops_before"] == 6
    assert set(tree["nodes"]) == {n.name for n in nodes}
    made = {o: n.name for n in nodes for o in n.output}
    group = {name: g["id"] for g in tree["groups"] for name in g["original_nodes"]}
    explained = {(e["from"], e["to"]) for e in tree["not_fused"]}
    fates = {name: n["fate"] for name, n in tree["nodes"].items()}
    for n in nodes:
        for source in (made[i] for i in n.input if i in made):
            inside = source in group and group.get(n.name) == group[source]
            assert inside or (source, n.name) in explained or "view" in (fates[source], fates[n.name]), (source, n.name, explained)
    assert all(e["reason"] for e in tree["not_fused"])
    assert "not fused" in report.text() and str(report) == report.text()
    assert report.why("mm0")
    for name in ("r.txt", "r.json"):
        report.save(str(tmp_path / name))
    assert json.loads((tmp_path / "r.json").read_text()) == tree


@pytest.mark.contract("L1", "L2", "L3", "E4")
def test_log_lines(mlp):
    script = """if True:
        import sys, graph_autofusion as gaf
        gaf.compile(sys.stdin.buffer.read())"""

    def lines(level):
        env = {**os.environ, "AUTOFUSION_LOG_LEVEL": level, "LC_ALL": "C.UTF-8"}
        done = subprocess.run([sys.executable, "-c", script], input=mlp[0].SerializeToString(), capture_output=True, env=env)
        assert done.returncode == 0, done.stderr.decode()
        return done.stderr.decode().splitlines()

    debug = lines("debug")
    found = debug.index("[AUTOFUSION] Found fusable subgraph: MatMul → BiasAdd → ReLU")
    estimate = next(i for i, line in enumerate(debug) if re.fullmatch(r"\[AUTOFUSION\] Resource estimate: reg=\d+%, ub=\d+% → within budget", line))
    made = debug.index("[AUTOFUSION] SuperKernel generated: matmul_bias_relu_fused")
    assert found < estimate < made
    assert lines("INFO") == [debug[found], "[AUTOFUSION] Cache hit: matmul_bias_relu_fused"] and lines("WARNING") == []


# ---- errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("P28")
def test_errors_carry_what_a_program_needs(mlp):
    compiled = gaf.compile(mlp[0])
    with pytest.raises(gaf.DTypeError) as e:
        compiled(np.zeros((2, 64)))
    assert isinstance(e.value, TypeError) and isinstance(e.value, gaf.GafError)
    assert e.value.code == "GAF3107" and "x" in str(e.value) and "float32" in str(e.value) and e.value.remedy
    with pytest.raises(gaf.ShapeError) as e:
        compiled(np.zeros((2, 63), np.float32))
    assert e.value.code == "GAF3102" and isinstance(e.value, ValueError)
    with pytest.raises(gaf.GafError, match="did you mean 'x'"):
        compiled.run({"X": floats(2, 64)})
    with pytest.raises(gaf.ModelError) as e:
        gaf.load_model(b"not a model")
    assert e.value.code == "GAF3001"
    bad = model_of([helper.make_node("MatMul", ["x", "w"], ["y"], "mm0")], {"x": [2, 3]}, {"y": [2, 4]}, {"w": floats(3, 4)})
    bad.graph.initializer[0].CopyFrom(numpy_helper.from_array(floats(5, 4), "w"))
    with pytest.raises(gaf.GafError) as e:
        gaf.load_model(bad)
    assert (e.value.code, e.value.node, e.value.op_type) == ("GAF3101", "mm0", "MatMul")
    with pytest.raises(gaf.GafError) as e:
        gaf.load_model("no-such-file.onnx")
    assert e.value.code == "GAF8001"
