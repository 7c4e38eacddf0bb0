"""Answers that hold to the bit or to the last place, where a fused kernel is tempted to do otherwise: casts that round, rows whose
variance is rounding alone, zeros in shapes, sizes that only an input shows, defaults that a model lists as inputs."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ml_dtypes = pytest.importorskip("ml_dtypes")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import graph_autofusion as gaf  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
GAF = pathlib.Path(os.environ.get("GAF_BUILD", ROOT / "build" / "release")) / "gaf"
node = helper.make_node
RNG = np.random.default_rng(5)


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(nodes, inputs, outputs, weights=None):
    stored = [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, stored), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(model, level=2, **inputs):
    return list(gaf.compile(model.SerializeToString(), threads=1, level=level).run(inputs).values())


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOFUSION_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize("level", [0, 2])
def test_what_jumps_reads_a_rounded_half(level):
    """sigmoid(9) is 1 in float16 and less in float32: an integer, a floor and a comparison tell."""
    half, weights = TensorProto.FLOAT16, {"one": np.float16([1])}
    nodes = [node("Sigmoid", ["x"], ["s"]), node("Cast", ["s"], ["i"], to=TensorProto.INT32), node("Floor", ["s"], ["f"]), node("Equal", ["s", "one"], ["e"]), node("Cast", ["s"], ["b"], to=TensorProto.BOOL)]
    model = model_of(nodes, [value("x", [40], half)], [value("i", [40], TensorProto.INT32), value("f", [40], half), value("e", [40], TensorProto.BOOL), value("b", [40], TensorProto.BOOL)], weights)
    x = np.full(40, 9, np.float16)
    x[1:4] = 0, -30, 7.5
    i, f, e, b = run(model, level, x=x)
    ones = np.array([k != 1 and k != 2 and k != 3 for k in range(40)])
    assert (i == ones).all() and (f == ones).all() and (e == ones).all() and (b[ones]).all() and not b[2] and b[1]


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("to, dtype", [(TensorProto.FLOAT16, np.float16), (TensorProto.BFLOAT16, ml_dtypes.bfloat16)])
def test_a_cast_inside_a_kernel_rounds(to, dtype, level):
    model = model_of([node("Mul", ["x", "x"], ["a"]), node("Cast", ["a"], ["h"], to=to), node("Cast", ["h"], ["f"], to=TensorProto.FLOAT), node("Add", ["f", "x"], ["y"])],
                     [value("x", [3, 37])], [value("y", [3, 37])])
    x = RNG.standard_normal((3, 37)).astype(np.float32)
    want = (x * x).astype(dtype).astype(np.float32) + x
    assert np.array_equal(run(model, level, x=x)[0], want)


@pytest.mark.parametrize("level", [0, 2])
def test_a_cast_to_an_integer_cuts(level):
    model = model_of([node("Cast", ["x"], ["i"], to=TensorProto.INT32), node("Cast", ["i"], ["f"], to=TensorProto.FLOAT), node("Mul", ["f", "x"], ["y"])], [value("x", [1, 21])], [value("y", [1, 21])])
    x = (np.arange(21, dtype=np.float32)[None] - 10) * np.float32(0.7)
    assert np.array_equal(run(model, level, x=x)[0], np.trunc(x) * x)


@pytest.mark.parametrize("columns", [250, 256, 1000])
def test_rows_of_equal_numbers_are_all_mean(columns):
    model = model_of([node("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1)], [value("x", ["n", columns])], [value("y", ["n", columns])],
                     {"s": RNG.standard_normal(columns).astype(np.float32), "b": (shift := RNG.standard_normal(columns).astype(np.float32))})
    x = np.repeat(np.array([[1234.1], [-7.3], [0], [40000.7]], np.float32), columns, axis=1)
    np.testing.assert_allclose(run(model, x=x)[0], np.tile(shift, (4, 1)), atol=1e-5)


def test_a_zero_of_a_shape_stays_a_zero():
    model = model_of([node("Reshape", ["x", "first"], ["a"]), node("Reshape", ["a", "second"], ["y"], allowzero=1)], [value("x", ["n", 6, 2])], [value("y", [0, 0, 3])],
                     {"first": np.array([3, 2, -1], np.int64), "second": np.array([0, 0, 3], np.int64)})
    assert run(model, x=np.zeros((0, 6, 2), np.float32))[0].shape == (0, 0, 3)


def test_a_node_without_a_kernel_may_use_a_size_of_an_input():
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"]), node("Sub", ["n", "two"], ["end"]), node("Range", ["zero", "end", "one"], ["r"]), node("Unsqueeze", ["end", "axis"], ["ends"]),
             node("Slice", ["x", "axis", "ends", "axis1"], ["part"]), node("Cast", ["r"], ["f"], to=TensorProto.FLOAT), node("ReduceSum", ["f"], ["t"], keepdims=0), node("Mul", ["part", "t"], ["y"])]
    weights = {"zero": np.int64(0), "one": np.int64(1), "two": np.int64(2), "axis": np.array([0], np.int64), "axis1": np.array([1], np.int64)}
    model = model_of(nodes, [value("x", ["b", "n"])], [value("y", ["b", "m"])], {k: np.asarray(v) for k, v in weights.items()})
    x = RNG.standard_normal((2, 7)).astype(np.float32)
    np.testing.assert_allclose(run(model, x=x)[0], x[:, :5] * 10, rtol=1e-6)


def test_a_default_listed_as_an_input_may_be_given(tmp_path):
    model = model_of([node("Mul", ["x", "gamma"], ["y"])], [value("x", [2, 3]), value("gamma", [3])], [value("y", [2, 3])], {"gamma": np.array([1, 2, 3], np.float32)})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    for name, given in (("plain", {}), ("given", {"gamma": np.array([5, 7, 9], np.float32)})):
        np.savez(tmp_path / "in.npz", x=x, **given)
        done = subprocess.run([GAF, "run", "m.onnx", "--inputs", "in.npz", "-o", "out.npz"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        with np.load(tmp_path / "out.npz") as z:
            assert np.array_equal(z["y"], x * given.get("gamma", np.array([1, 2, 3], np.float32))), name


def test_the_output_that_keeps_attention_apart_is_named():
    nodes = [node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["s"]), node("Softmax", ["s"], ["probs"], axis=-1), node("MatMul", ["probs", "v"], ["y"])]
    shape = [2, 4, 6]
    model = model_of(nodes, [value(n, shape) for n in "qkv"], [value("y", shape), value("probs", [2, 4, 4])])
    report = json.loads(gaf.explain(model.SerializeToString()).json())
    reasons = [e["reason"]["id"] if isinstance(e["reason"], dict) else e["reason"] for e in report["not_fused"]]
    assert "graph-output" in reasons and "'probs'" in json.dumps(report["not_fused"])


def test_an_image_smaller_than_its_window_is_refused_by_name():
    model = model_of([node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3]), node("Relu", ["c"], ["y"])], [value("x", [1, 2, "H", "W"])], [value("y", None)],
                     {"w": RNG.standard_normal((4, 2, 3, 3)).astype(np.float32)})
    compiled = gaf.compile(model.SerializeToString(), threads=1)
    for height, rows in ((5, 3), (2, 0)):  # ONNX's formula: one row less than the window leaves no output row
        assert next(iter(compiled.run({"x": np.ones((1, 2, height, 6), np.float32)}).values())).shape == (1, 4, rows, 4)
    with pytest.raises(gaf.ShapeError, match="input 'x': dimension 'H' is 1, the model takes at least 2"):
        compiled.run({"x": np.ones((1, 2, 1, 6), np.float32)})
