"""The fused ONNX file (`gaf fuse`): passes the ONNX checker, gives the same results in ONNX Runtime, keeps inputs, outputs and
opset, reloads to the same groups, and fusing it again changes nothing."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
GAF = pathlib.Path(os.environ.get("GAF_BUILD", ROOT / "build" / "release")) / "gaf"
rng = np.random.default_rng(7)


def weight(name, *shape):
    return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)


def tensor(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers, opset=17, ir=8):
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def epilogue():
    n = helper.make_node
    nodes = [n("MatMul", ["x", "w"], ["m"], "mm"), n("Add", ["m", "b"], ["a"]), n("Relu", ["a"], ["r"]), n("Sigmoid", ["r"], ["y"], "sig")]
    return model(nodes, [tensor("x", ["n", 8])], [tensor("y", ["n", 16]), tensor("a", ["n", 16])], [weight("w", 8, 16), weight("b", 16)], ir=7)


def shape_arithmetic():
    """Reshape by a shape that is computed from a value inside the group: folding removes it, the file keeps it."""
    n = helper.make_node
    nodes = [n("Relu", ["x"], ["r"], "relu"), n("Shape", ["r"], ["s"], "shape"), n("Reshape", ["r", "flat"], ["f"], "flatten"),
             n("Exp", ["f"], ["e"], "exp"), n("Reshape", ["e", "s"], ["g"], "back"), n("Add", ["g", "x"], ["y"], "add")]
    return model(nodes, [tensor("x", ["n", 2, 3])], [tensor("y", ["n", 2, 3])], [numpy_helper.from_array(np.array([-1], np.int64), "flat")])


def branches():
    n = helper.make_node
    then = helper.make_graph([n("Add", ["r", "w"], ["t"], "add")], "then", [], [tensor("t", None)])
    other = helper.make_graph([n("Mul", ["r", "x"], ["t2"], "mul")], "else", [], [tensor("t2", None)])
    nodes = [n("Exp", ["x"], ["e"], "exp"), n("Relu", ["e"], ["r"], "relu"), n("If", ["c"], ["i"], "if", then_branch=then, else_branch=other),
             n("Neg", ["i"], ["v"], "neg"), n("Tanh", ["v"], ["y"], "tanh")]
    return model(nodes, [tensor("x", ["n", 4]), tensor("c", [], TensorProto.BOOL)], [tensor("y", ["n", 4])], [weight("w", 4)])


def old_opset():
    n = helper.make_node
    nodes = [n("Conv", ["x", "k"], ["c"], "conv", pads=[1, 1, 1, 1]), n("BatchNormalization", ["c", "s", "b", "m", "v"], ["bn"], "bn"),
             n("Relu", ["bn"], ["y"], "relu")]
    initializers = [weight("k", 4, 3, 3, 3), weight("s", 4), weight("b", 4), weight("m", 4), numpy_helper.from_array(np.ones(4, np.float32), "v")]
    return model(nodes, [tensor("x", ["n", 3, 8, 8])] + [tensor(i.name, list(i.dims)) for i in initializers], [tensor("y", ["n", 4, 8, 8])], initializers, 9, 3)


MODELS = [epilogue, shape_arithmetic, branches, old_opset]


def feeds(m):
    stored = {i.name for i in m.graph.initializer}
    r = np.random.default_rng(1)
    out = {}
    for i in m.graph.input:
        if i.name in stored:
            continue
        dims = [d.dim_value or 2 for d in i.type.tensor_type.shape.dim]
        out[i.name] = np.array(True) if i.type.tensor_type.elem_type == TensorProto.BOOL else r.standard_normal(dims).astype(np.float32)
    return out


def run(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options)
    return session.run(None, feeds(onnx.load(path)))


def fuse(folder, source, target):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AUTOFUSION_")}
    environment["AUTOFUSION_CACHE_DIR"] = str(folder / "cache")
    done = subprocess.run([GAF, "fuse", str(source), "-o", str(target)], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def groups(path):
    return json.loads({p.key: p.value for p in onnx.load(path).metadata_props}["gaf.groups"])


@pytest.mark.contract("C24")
@pytest.mark.parametrize("make", MODELS, ids=lambda m: m.__name__)
def test_fused_file(make, tmp_path):
    before = make()
    onnx.save(before, tmp_path / "m.onnx")
    fuse(tmp_path, "m.onnx", "f.onnx")
    onnx.checker.check_model(str(tmp_path / "f.onnx"), full_check=True)
    after = onnx.load(tmp_path / "f.onnx")
    assert [i.name for i in after.graph.input] == [i.name for i in before.graph.input]
    assert [o.name for o in after.graph.output] == [o.name for o in before.graph.output]
    assert {i.name for i in before.graph.initializer} == {i.name for i in after.graph.initializer}
    assert after.ir_version >= 8
    assert {o.domain: o.version for o in before.opset_import}.items() <= {o.domain: o.version for o in after.opset_import}.items()
    assert groups(tmp_path / "f.onnx") and after.functions
    for want, got in zip(run(tmp_path / "m.onnx"), run(tmp_path / "f.onnx")):
        np.testing.assert_array_equal(got, want)
    fuse(tmp_path, "f.onnx", "again.onnx")
    assert groups(tmp_path / "again.onnx") == groups(tmp_path / "f.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "f.onnx").read_bytes()


@pytest.mark.contract("C24")
def test_external_data_comes_along(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    onnx.save(epilogue(), tmp_path / "in" / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert (tmp_path / "in" / "w.bin").exists()
    fuse(tmp_path, tmp_path / "in" / "m.onnx", tmp_path / "out" / "f.onnx")
    fuse(tmp_path / "in", "m.onnx", "here.onnx")  # a path without a folder
    assert (tmp_path / "in" / "here.onnx").read_bytes() == (tmp_path / "out" / "f.onnx").read_bytes()
    want = run(tmp_path / "in" / "m.onnx")
    (tmp_path / "in" / "w.bin").unlink()
    onnx.checker.check_model(str(tmp_path / "out" / "f.onnx"), full_check=True)
    for a, b in zip(want, run(tmp_path / "out" / "f.onnx")):
        np.testing.assert_array_equal(a, b)
