"""gaf with an NPU as the target, as a user meets it: kernels as text (`gaf emit --backend ascendc|pto`), predictions, and what is
refused and how. What the texts compute is checked by tests/npu."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
GAF = pathlib.Path(os.environ.get("GAF_BUILD", ROOT / "build" / "release")) / "gaf"
NPU = ["--target", "ascend910b"]


def save(path, nodes, inputs, outputs, constants=(), dtype=TensorProto.FLOAT16, opset=17):
    value = lambda name, dims: helper.make_tensor_value_info(name, dtype, dims)  # noqa: E731
    graph = helper.make_graph(nodes, "g", [value(*i) for i in inputs], [value(*o) for o in outputs], [numpy_helper.from_array(v, k) for k, v in constants])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    at = tmp_path_factory.mktemp("npu")
    rng = np.random.default_rng(0)
    f16 = lambda *dims: rng.standard_normal(dims).astype(np.float16)  # noqa: E731
    node = helper.make_node
    mlp = [node("MatMul", ["x", "w"], ["m"], "mm0"), node("Add", ["m", "b"], ["a"], "bias0"), node("Relu", ["a"], ["y"], "relu0")]
    weights = [("w", f16(70, 50)), ("b", f16(50))]
    save(at / "mlp.onnx", mlp, [("x", [100, 70])], [("y", [100, 50])], weights)
    save(at / "free.onnx", mlp, [("x", ["rows", 70])], [("y", ["rows", 50])], weights)
    save(at / "softmax.onnx", [node("Softmax", ["x"], ["y"], "sm0", axis=-1)], [("x", [4, 25, 77])], [("y", [4, 25, 77])])
    save(at / "old.onnx", [node("Softmax", ["x"], ["y"], "sm0", axis=2)], [("x", [4, 25, 77])], [("y", [4, 25, 77])], opset=11)
    save(at / "long.onnx", [node("Softmax", ["x"], ["y"], "sm0", axis=-1)], [("x", [4, 40000])], [("y", [4, 40000])])
    save(at / "casts.onnx", [node("Cast", ["x"], ["u"], "up0", to=TensorProto.FLOAT), node("Softmax", ["u"], ["v"], "sm0", axis=-1), node("Cast", ["v"], ["y"], "down0", to=TensorProto.FLOAT16)],
         [("x", [4, 25, 77])], [("y", [4, 25, 77])])
    save(at / "spelled.onnx", [  # softmax as some exporters write it
        node("ReduceMax", ["x"], ["t"], "max0", axes=[-1], keepdims=1), node("Sub", ["x", "t"], ["d"], "sub0"), node("Exp", ["d"], ["e"], "exp0"),
        node("ReduceSum", ["e", "axes"], ["s"], "sum0", keepdims=1), node("Div", ["e", "s"], ["y"], "div0")],
        [("x", [8, 100])], [("y", [8, 100])], [("axes", np.array([-1], np.int64))])
    save(at / "both.onnx", [node("Gemm", ["x", "w", "b"], ["m"], "fc0"), node("Relu", ["m"], ["r"], "relu0"), node("Softmax", ["r"], ["y"], "sm0", axis=-1)],
         [("x", [100, 70])], [("y", [100, 50])], weights)
    save(at / "mixed.onnx", [node("MatMul", ["x", "w"], ["m"], "mm0"), node("Sigmoid", ["m"], ["s"], "sig0"), node("Softmax", ["s"], ["t"], "sm0", axis=-1),
                             node("Erf", ["t"], ["y"], "erf0")], [("x", [100, 70])], [("y", [100, 50])], weights)
    save(at / "f32.onnx", [node("MatMul", ["x", "w"], ["y"], "mm0")], [("x", [10, 70])], [("y", [10, 50])], [("w", f16(70, 50).astype(np.float32))], TensorProto.FLOAT)
    save(at / "wide.onnx", [node("MatMul", ["x", "w"], ["y"], "mm0")], [("x", [3, 20]), ("w", [20, 70000])], [("y", [3, 70000])])
    save(at / "conv.onnx", [node("Conv", ["x", "k"], ["y"], "conv0", pads=[1, 1, 1, 1])], [("x", [1, 3, 8, 8])], [("y", [1, 4, 8, 8])], [("k", f16(4, 3, 3, 3))])
    return at


def gaf(folder, *words, code=0):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AUTOFUSION_")}
    environment["AUTOFUSION_CACHE_DIR"] = str(folder / "cache")
    done = subprocess.run([GAF, *map(str, words)], cwd=folder, env=environment, capture_output=True, timeout=120, text=True)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def document(folder, *words, **kw):
    return json.loads(gaf(folder, *words, "--json", **kw).stdout)


@pytest.mark.parametrize("target", ["ascend910b", "Ascend910B1", "ASCEND910B4"])
@pytest.mark.parametrize("model, kernel, inputs", [("mlp", "matmul_bias_relu_fused", ["x", "w", "b"]), ("softmax", "softmax", ["x"])])
def test_ascendc(folder, model, kernel, inputs, target):
    d = document(folder, "emit", f"{model}.onnx", "-o", f"out/{model}-{target}", "--backend", "ascendc", "--target", target)
    assert d["schema"] == "gaf.emit/1" and len(d["files"]) == len(d["kernels"]) == 1
    assert d["target"] == {"ascend910b": "ascend910b3"}.get(target, target.lower())
    assert d["files"] == [d["kernels"][0]["name"] + ".cpp"] == d["kernels"][0]["files"]
    k = d["kernels"][0]
    assert k["name"].startswith(kernel.split("_")[0]) and k["simulated"] is True and k["predicted_us"] > 0 and k["blocks"] >= 1
    assert [b["name"] for b in k["buffers"]] == [*inputs, "y"] and k["buffers"][-1]["role"] == "out"
    assert all(b["dtype"] == "float16" for b in k["buffers"])
    text = (folder / d["folder"] / d["files"][0]).read_text()
    assert f'void {k["name"]}(' in text and "kernel_operator.h" in text and d["target"] in text
    again = document(folder, "emit", f"{model}.onnx", "-o", f"out/{model}-{target}-2", "--backend", "ascendc", "--target", target)
    assert (folder / again["folder"] / again["files"][0]).read_text() == text, "same plan, same text"


@pytest.mark.contract("O18")
@pytest.mark.parametrize("model", ["mlp", "softmax"])
def test_pto(folder, model):
    d = document(folder, "emit", f"{model}.onnx", "-o", f"out/pto-{model}", "--backend", "pto", *NPU)
    name = d["kernels"][0]["name"]
    assert d["files"] == [f"{name}.cpp", f"{name}.pto"]
    cpp, text = ((folder / d["folder"] / f).read_text() for f in d["files"])
    assert "TLOAD(" in cpp and "TASSIGN" in cpp and "pto." in text
    assert sorted(f.name for f in (folder / d["folder"]).iterdir()) == sorted(d["files"])


def test_one_file_a_group(folder):
    d = document(folder, "emit", "both.onnx", "-o", "out/both", "--backend", "ascendc", *NPU)
    assert [k["group"] for k in d["kernels"]] == ["g0", None] and len(d["files"]) == 2
    softmax = d["kernels"][1]["name"]
    only = document(folder, "emit", "both.onnx", "-o", "out/g0", "--backend", "ascendc", "--group", "g0", *NPU)
    assert only["files"] == d["files"][:1]
    assert document(folder, "emit", "both.onnx", "-o", "out/sm", "--backend", "pto", "--group", softmax, *NPU)["files"] == [f"{softmax}.cpp", f"{softmax}.pto"]
    done = gaf(folder, "emit", "both.onnx", "-o", "out/none", "--backend", "pto", "--group", "g7", *NPU, code=2)
    assert "no group 'g7'" in done.stderr and not (folder / "out/none").exists()


def test_softmax_in_other_spellings(folder):
    one = document(folder, "emit", "old.onnx", "-o", "out/old", "--backend", "ascendc", *NPU)
    now = document(folder, "emit", "softmax.onnx", "-o", "out/now", "--backend", "ascendc", *NPU)
    assert [b["dims"] for b in one["kernels"][0]["buffers"]] == [b["dims"] for b in now["kernels"][0]["buffers"]] == [[100, 77], [100, 77]]
    casts = document(folder, "emit", "casts.onnx", "-o", "out/casts", "--backend", "ascendc", *NPU)["kernels"]
    assert len(casts) == 1 and [b["dtype"] for b in casts[0]["buffers"]] == ["float16", "float16"]
    assert len(document(folder, "emit", "spelled.onnx", "-o", "out/spelled", "--backend", "ascendc", *NPU)["files"]) == 1


def test_a_target_is_needed(folder):
    for words in ([], ["--target", "host"], ["--target", "x86-64-avx2"]):
        for backend in ("ascendc", "pto"):
            done = gaf(folder, "emit", "mlp.onnx", "-o", "out/no", "--backend", backend, *words, code=2)
            assert "GAF1102" in done.stderr and "--target ascend910b" in done.stderr and "is a CPU" in done.stderr
    assert "GAF2204" in gaf(folder, "emit", "mlp.onnx", "-o", "out/no", "--backend", "pto", "--target", "ascend910", code=2).stderr
    assert "GAF1102" in gaf(folder, "emit", "mlp.onnx", "-o", "out/no", "--backend", "cuda", *NPU, code=2).stderr
    assert "GAF1102" in gaf(folder, "emit", "mlp.onnx", "-o", "out/no", "--backend", "pto", "--kind", "ir", *NPU, code=2).stderr
    assert "GAF4009" in gaf(folder, "emit", "mlp.onnx", "-o", "out/no", "--backend", "pto", "--kind", "project", *NPU, code=2).stderr
    assert not (folder / "out/no").exists()


def test_unsupported_ops_are_named_together_and_nothing_is_written(folder):
    done = gaf(folder, "emit", "mixed.onnx", "-o", "out/mixed", "--backend", "ascendc", *NPU, "--json", code=4)
    errors = json.loads(done.stdout)["errors"]
    assert [(e["code"], e["node"], e["op_type"]) for e in errors] == [("GAF4002", "sig0", "Sigmoid"), ("GAF4002", "erf0", "Erf")]
    assert all("back end ascendc" in e["message"] and e["remedy"] for e in errors)
    assert not (folder / "out/mixed").exists()
    # the kernels that there are can be had one by one
    assert len(document(folder, "emit", "mixed.onnx", "-o", "out/mixed", "--backend", "ascendc", "--group", "matmul", *NPU)["files"]) == 1


@pytest.mark.parametrize("model, node, words", [
    ("long", "sm0", "one row of 40000 elements needs"), ("f32", "mm0", "with float32 has no kernel"), ("conv", "conv0", "no kernel")])
def test_refusals_say_why(folder, model, node, words):
    done = gaf(folder, "emit", f"{model}.onnx", "-o", "out/refused", "--backend", "pto", *NPU, code=4)
    assert "GAF4002" in done.stderr and f"'{node}'" in done.stderr and words in done.stderr and "remedy" in done.stderr
    assert not (folder / "out/refused").exists()


def test_free_dimensions_must_be_bound(folder):
    done = gaf(folder, "emit", "free.onnx", "-o", "out/free", "--backend", "ascendc", *NPU, code=3)
    assert "GAF3105" in done.stderr and "'rows'" in done.stderr and "--dim" in done.stderr
    d = document(folder, "emit", "free.onnx", "-o", "out/free", "--backend", "ascendc", "--dim", "rows=33", *NPU)
    assert d["kernels"][0]["buffers"][0]["dims"] == [33, 70]


def test_a_folder_that_cannot_be_written(folder):
    (folder / "file").write_text("x")
    assert "GAF8001" in gaf(folder, "emit", "mlp.onnx", "-o", "file/out", "--backend", "pto", *NPU, code=7).stderr


def test_what_one_language_cannot_say_is_refused_there_only(folder):
    """Rows so far apart have no PTO load; Ascend C loads them one by one."""
    done = gaf(folder, "emit", "wide.onnx", "-o", "out/wide", "--backend", "pto", *NPU, code=4)
    assert "GAF4002" in done.stderr and "'mm0'" in done.stderr and "back end pto" in done.stderr and "70000 elements apart" in done.stderr
    assert not (folder / "out/wide").exists()
    assert document(folder, "emit", "wide.onnx", "-o", "out/wide", "--backend", "ascendc", *NPU)["files"]


def test_files_that_belong_together_are_written_together(folder):
    (folder / "blocked" / "softmax.pto").mkdir(parents=True)
    assert "GAF8001" in gaf(folder, "emit", "softmax.onnx", "-o", "blocked", "--backend", "pto", *NPU, code=7).stderr
    assert [f.name for f in (folder / "blocked").iterdir()] == ["softmax.pto"], "no part of the kernel stays"


@pytest.mark.contract("G2")
def test_predictions_are_marked_simulated(folder):
    report = document(folder, "explain", "mlp.onnx", *NPU)
    assert report["target"] == "ascend910b3" and report["simulated"] is True and report["groups"][0]["simulated"] is True
    assert report["groups"][0]["predicted_us"]["before"] > report["groups"][0]["predicted_us"]["after"] > 0 and report["groups"][0]["measured_us"] is None
    text = gaf(folder, "explain", "mlp.onnx", *NPU).stdout
    assert "us simulated" in text and "measured" not in text
    assert "us simulated" in gaf(folder, "fuse", "mlp.onnx", "-o", "fused.onnx", *NPU).stdout
    slow, fast = (document(folder, "explain", "softmax.onnx", "--target", t)["totals"]["predicted_us_after"] for t in ("ascend910b4", "ascend910b1"))
    assert slow > fast, "the numbers follow the target's file"
    assert document(folder, "explain", "mlp.onnx")["simulated"] is False


def test_ops_without_a_kernel_run_as_extern_in_the_plan(folder):
    report = document(folder, "explain", "mixed.onnx", *NPU)
    assert report["nodes"]["sig0"]["fate"] == "extern" and "no kernel on target ascend910b3" in report["nodes"]["sig0"]["reason"]
    assert report["nodes"]["mm0"]["fate"] == "alone"
    assert all(e["reason"] for e in report["not_fused"]) and len(report["not_fused"]) == 3
    assert not [n for n in report["nodes"] if "Transpose" in n], "no layout of another kind of target"


def test_a_cpu_does_not_run_it(folder):
    done = gaf(folder, "run", "mlp.onnx", *NPU, code=6)
    assert "GAF6005" in done.stderr and "ascend910b3" in done.stderr and "gaf emit" in done.stderr
    conv = document(folder, "explain", "conv.onnx", *NPU)
    assert conv["nodes"]["conv0"]["fate"] == "extern"
