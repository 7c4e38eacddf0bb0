"""Ops that draw numbers: their distributions, seeds that repeat, and nodes that stay apart though they are equal."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import graph_autofusion as gaf  # noqa: E402

node = helper.make_node


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(nodes, inputs, outputs, weights=None):
    stored = [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, stored), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOFUSION_CACHE_DIR", str(tmp_path / "cache"))


def test_uniform_and_normal_numbers():
    n, seed = 20000, {"seed": 3.0}
    nodes = [node("RandomUniform", [], ["u"], shape=[n], low=-1.0, high=3.0, **seed), node("RandomNormal", [], ["g"], shape=[n], mean=2.0, scale=0.5, **seed),
             node("RandomUniformLike", ["x"], ["d"], dtype=TensorProto.DOUBLE, **seed), node("RandomNormalLike", ["x"], ["h"], dtype=TensorProto.FLOAT16, **seed)]
    outputs = [value("u", [n]), value("g", [n]), value("d", ["a", 4], TensorProto.DOUBLE), value("h", ["a", 4], TensorProto.FLOAT16)]
    got = gaf.compile(model_of(nodes, [value("x", ["a", 4])], outputs)).run({"x": np.zeros((5000, 4), np.float32)})
    u, g = got["u"], got["g"]
    assert u.min() >= -1 and u.max() < 3 and abs(u.mean() - 1) < 0.05 and abs(u.std() - 4 / 12**0.5) < 0.05
    assert abs(g.mean() - 2) < 0.02 and abs(g.std() - 0.5) < 0.02 and abs((np.abs(g - 2) < 0.5).mean() - 0.6827) < 0.02
    assert got["d"].shape == got["h"].shape == (5000, 4) and (got["d"].dtype, got["h"].dtype) == (np.float64, np.float16)
    assert 0 <= got["d"].min() and got["d"].max() < 1 and abs(got["d"].mean() - 0.5) < 0.02 and abs(got["h"].astype(float).std() - 1) < 0.05
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.03


def test_bernoulli_and_multinomial():
    probabilities = np.repeat(np.float32([0, 0.25, 1]), 8000)
    logits = np.log(np.float32([[0.1, 0.2, 0.7], [0, 1, 0]]) + np.float32(0), where=np.float32([[1, 1, 1], [0, 1, 0]]) > 0, out=np.full((2, 3), -np.inf, np.float32))
    nodes = [node("Bernoulli", ["p"], ["b"], seed=1.0, dtype=TensorProto.BOOL), node("Multinomial", ["l"], ["m"], seed=2.0, sample_size=9000, dtype=TensorProto.INT64)]
    model = model_of(nodes, [value("p", [24000]), value("l", [2, 3])], [value("b", [24000], TensorProto.BOOL), value("m", [2, 9000], TensorProto.INT64)])
    got = gaf.compile(model).run({"p": probabilities, "l": logits})
    never, some, always = got["b"].reshape(3, -1)
    assert not never.any() and always.all() and abs(some.mean() - 0.25) < 0.02
    np.testing.assert_allclose(np.bincount(got["m"][0], minlength=3) / 9000, [0.1, 0.2, 0.7], atol=0.02)
    assert (got["m"][1] == 1).all()


@pytest.mark.parametrize("level", [0, 2])
def test_equal_nodes_and_runs_differ_unless_a_seed_says_otherwise(level):
    nodes = [node("RandomUniformLike", ["x"], ["a"]), node("RandomUniformLike", ["x"], ["b"]), node("RandomNormal", [], ["c"], shape=[8], seed=7.0), node("RandomNormal", [], ["d"], shape=[8], seed=7.0),
             node("RandomUniform", [], ["e"], shape=[8])]
    compiled = gaf.compile(model_of(nodes, [value("x", [8])], [value(n, [8]) for n in "abcde"]), level=level)
    one, two = (compiled.run({"x": np.zeros(8, np.float32)}) for _ in range(2))
    assert (one["a"] != one["b"]).any() and (one["a"] != two["a"]).any() and (one["e"] != two["e"]).any()
    assert (one["c"] == two["c"]).all() and (one["c"] == one["d"]).all()


def test_what_cannot_be_drawn_is_refused():
    model = model_of([node("RandomUniform", [], ["y"], "draw0", shape=[4], dtype=TensorProto.INT32)], [], [value("y", [4], TensorProto.INT32)])
    with pytest.raises(gaf.GafError, match="draw0.*floating-point"):
        gaf.load_model(model)
