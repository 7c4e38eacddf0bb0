"""The command line as a user meets it: every command on a small model, what it prints, its JSON, its exit codes."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
GAF = pathlib.Path(os.environ.get("GAF_BUILD", ROOT / "build" / "release")) / "gaf"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a small model: y = relu(x @ w + b), free batch."""
    at = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal((8, 16), np.float32), rng.standard_normal(16, np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"], "mm0"), helper.make_node("Add", ["m", "b"], ["a"], "bias0"), helper.make_node("Relu", ["a"], ["y"], "relu0")],
        "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 16])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), at / "m.onnx")
    two = helper.make_graph(
        [helper.make_node("Add", ["p", "q"], ["s"], "add0"), helper.make_node("Where", ["c", "s", "p"], ["z"], "where0")], "two",
        [helper.make_tensor_value_info("p", TensorProto.INT32, ["n"]), helper.make_tensor_value_info("q", TensorProto.INT32, ["n"]), helper.make_tensor_value_info("c", TensorProto.BOOL, ["n"])],
        [helper.make_tensor_value_info("z", TensorProto.INT32, ["n"])])
    onnx.save(helper.make_model(two, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), at / "two.onnx")
    x = rng.standard_normal((4, 8), np.float32)
    np.save(at / "x.npy", x)
    np.savez(at / "x.npz", x=x)
    (at / "x.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
    np.save(at / "expected.npy", np.maximum(x @ w + b, 0))
    return at


def gaf(folder, *words, code=0, env=None, **kw):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AUTOFUSION_")}
    environment.update({"AUTOFUSION_CACHE_DIR": str(folder / "cache"), **(env or {})})
    done = subprocess.run([GAF, *map(str, words)], cwd=folder, env=environment, capture_output=True, timeout=120, **kw)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def document(folder, *words, **kw):
    return json.loads(gaf(folder, *words, "--json", **kw).stdout)


@pytest.mark.contract("C18")
def test_version(folder):
    text = gaf(folder, "--version").stdout
    assert text.startswith("gaf 0.1.0 (cpu: ") and text.rstrip().endswith("; backends: cpu ascendc pto)")
    d = document(folder, "--version")
    assert d["schema"] == "gaf.version/1" and "cpu" in d["backends"]


@pytest.mark.contract("C2")
def test_run_prints_a_line_per_output(folder):
    lines = gaf(folder, "run", "m.onnx", "--shape", "x:4,8", "--random", 7).stdout.splitlines()
    assert lines[0].split() == ["output", "dtype", "shape", "min", "max", "mean", "nan", "inf"]
    assert lines[1].split()[:4] == ["y", "float32", "4x16", "0"]
    d = document(folder, "run", "m.onnx", "--dim", "batch=4", "--random", 7)
    assert d["schema"] == "gaf.run/1" and d["outputs"][0]["shape"] == [4, 16] and d["outputs"][0]["min"] == 0
    assert d["compiled"] + d["cache_hits"] >= 1 and d["latency_us"] > 0


@pytest.mark.contract("C2", "C23")
def test_inputs_from_files_give_the_right_values(folder):
    want = np.load(folder / "expected.npy")
    for words in (["--input", "x=x.npy"], ["--input", "x.npy"], ["--input", "x=x.npz#x"], ["--inputs", "x.npz"], ["--input", "x=x.pb"]):
        gaf(folder, "run", "m.onnx", *words, "-o", "out.npz")
        np.testing.assert_allclose(np.load(folder / "out.npz")["y"], want, rtol=1e-5, atol=1e-5)
    gaf(folder, "run", "m.onnx", "--input", "x.npy", "--unfused", "-o", "out.npz")
    np.testing.assert_allclose(np.load(folder / "out.npz")["y"], want, rtol=1e-5, atol=1e-5)


@pytest.mark.contract("C23")
def test_random_inputs(folder):
    runs = [document(folder, "run", "two.onnx", "--dim", "n=1000", "--random", n, "--range", "p:5,6", "--range", "q:-3,0") for n in (1, 1, 2)]
    assert runs[0]["outputs"] == runs[1]["outputs"] != runs[2]["outputs"]
    assert runs[0]["outputs"][0]["min"] == 2 and runs[0]["outputs"][0]["max"] == 5
    np.savez(folder / "part.npz", p=np.arange(6, dtype=np.int32))
    assert "GAF3103" in gaf(folder, "run", "two.onnx", "--inputs", "part.npz", code=3).stderr
    assert document(folder, "run", "two.onnx", "--inputs", "part.npz", "--random", 1)["outputs"][0]["shape"] == [6]
    np.savez(folder / "extra.npz", p=np.arange(6, dtype=np.int32), pp=np.arange(6, dtype=np.int32))
    assert "GAF3104" in gaf(folder, "run", "two.onnx", "--inputs", "extra.npz", code=3).stderr


@pytest.mark.contract("C22")
def test_shapes_and_dims(folder):
    assert document(folder, "run", "m.onnx", "--shape", "x:3,8")["outputs"][0]["shape"] == [3, 16]
    assert document(folder, "run", "m.onnx", "--dim=batch=5")["outputs"][0]["shape"] == [5, 16]
    assert document(folder, "run", "m.onnx", "--shape", "x:-1,8", "--dim", "batch=2")["outputs"][0]["shape"] == [2, 16]
    error = gaf(folder, "run", "m.onnx", code=3).stderr
    assert "error GAF3105: input 'x' has free dimension 'batch'" in error and "remedy:" in error
    assert "GAF3102" in gaf(folder, "run", "m.onnx", "--shape", "x:3,9", code=3).stderr
    assert "did you mean 'x'" in gaf(folder, "run", "m.onnx", "--shape", "X:3,8", code=3).stderr
    assert "GAF1102" in gaf(folder, "run", "m.onnx", "--shape", "x:a", code=2).stderr


@pytest.mark.contract("C3")
def test_bench(folder):
    d = document(folder, "bench", "m.onnx", "--shape", "x:64,8", "--runs", 5, "--min-time", 0, "--threads", 1)
    assert d["schema"] == "gaf.bench/1" and d["threads"] == 1 and d["runs"] == 5
    assert d["verdict"] in ("faster", "same", "slower") and d["speedup_ci95"][0] <= d["speedup"] <= d["speedup_ci95"][1]
    assert d["unfused_us"]["p10"] <= d["unfused_us"]["median"] <= d["unfused_us"]["p90"]
    text = gaf(folder, "bench", "m.onnx", "--shape", "x:64,8", "--runs", 3, "--min-time", 0).stdout
    assert "unfused" in text and "speed-up" in text and "verdict:" in text
    pytest.importorskip("onnxruntime")
    d = document(folder, "bench", "m.onnx", "--shape", "x:64,8", "--runs", 3, "--min-time", 0, "--baseline", "onnxruntime", env=in_this_python())
    assert d["baselines"]["onnxruntime"]["median"] > 0


def in_this_python():
    return {"VIRTUAL_ENV": str(pathlib.Path(sys.executable).parent.parent)}


@pytest.mark.contract("C4")
def test_explain(folder):
    text = gaf(folder, "explain", "m.onnx").stdout
    assert text.startswith("model m.onnx   target host") and "mm0" in text and "kernels" in text
    d = document(folder, "explain", "m.onnx")
    assert d["schema"] == "gaf.report/1" and set(d["nodes"]) == {"mm0", "bias0", "relu0"}
    assert json.loads(gaf(folder, "explain", "m.onnx", "--format", "json").stdout)["schema"] == "gaf.report/1"
    assert "mm0" in gaf(folder, "explain", "m.onnx", "--node", "mm0").stdout
    assert "mm0 -> bias0" in gaf(folder, "explain", "m.onnx", "--edge", "mm0,bias0").stdout
    assert "did you mean 'mm0'" in gaf(folder, "explain", "m.onnx", "--node", "mm1", code=3).stderr
    assert gaf(folder, "explain", "--error", "GAF3105").stdout.startswith("GAF3105: free dimension")
    gaf(folder, "explain", "m.onnx", "--report", "r.json")
    assert json.loads((folder / "r.json").read_text())["schema"] == "gaf.report/1"
    gaf(folder, "explain", "m.onnx", "--report", "r.txt")
    assert "model m.onnx" in (folder / "r.txt").read_text()


@pytest.mark.contract("C5")
def test_compare(folder):
    d = document(folder, "compare", "m.onnx", "--dim", "batch=4", "--trials", 2, "--per-kernel")
    assert d["schema"] == "gaf.compare/1" and d["verdict"] == "pass" and d["trials"] == 2 and d["reference"] == "interp"
    assert d["outputs"][0]["mismatches"] == 0 and d["outputs"][0]["first_mismatch"] is None
    assert "pass" in gaf(folder, "compare", "m.onnx", "--dim", "batch=4", "--reference", "unfused").stdout
    pytest.importorskip("onnxruntime")
    assert document(folder, "compare", "m.onnx", "--dim", "batch=4", "--reference", "onnxruntime", env=in_this_python())["verdict"] == "pass"


@pytest.mark.contract("C1")
def test_fuse(folder):
    assert "wrote f.onnx" in gaf(folder, "fuse", "m.onnx", "-o", "f.onnx", "--strategy", "aggressive").stdout
    onnx.checker.check_model(onnx.load(folder / "f.onnx"))
    d = document(folder, "fuse", "m.onnx", "-o", "f.onnx")
    assert d["schema"] == "gaf.fuse/1" and d["output"] == "f.onnx" and d["totals"]["ops_before"] == 3
    assert "GAF1102" in gaf(folder, "fuse", "m.onnx", code=2).stderr
    assert "GAF8001" in gaf(folder, "fuse", "m.onnx", "-o", "nowhere/f.onnx", code=7).stderr


@pytest.mark.contract("C10", "E10")
def test_config_shows_origins(folder):
    (folder / "s.yaml").write_text("strategy: aggressive\nthreads: 3\nlevel: 1\n")
    d = document(folder, "config", "--config", "s.yaml", "--level", 2, env={"AUTOFUSION_STRATEGY": "conservative"})["settings"]
    assert d["level"] == {"value": "2", "origin": "cli"}
    assert d["strategy"] == {"value": "conservative", "origin": "env AUTOFUSION_STRATEGY"}
    assert d["threads"] == {"value": "3", "origin": "file"}
    assert d["max_fusion_size"] == {"value": "64", "origin": "default"}
    assert any(line.split() == ["strategy", "conservative", "env", "AUTOFUSION_STRATEGY"] for line in gaf(folder, "config", env={"AUTOFUSION_STRATEGY": "conservative"}).stdout.splitlines())
    assert "GAF1201" in gaf(folder, "config", env={"AUTOFUSION_STRATEGY": "fast"}, code=2).stderr
    (folder / "bad.yaml").write_text("strategi: aggressive\n")
    assert "bad.yaml:1:1: error GAF1202" in gaf(folder, "config", "--config", "bad.yaml", code=2).stderr


@pytest.mark.contract("C14")
def test_emit(folder):
    d = document(folder, "emit", "m.onnx", "-o", "out/kernels", "--strategy", "aggressive")
    assert d["schema"] == "gaf.emit/1" and d["files"]
    for name in d["files"]:
        assert (folder / "out/kernels" / name).read_text().strip()
    d = document(folder, "emit", "m.onnx", "-o", "out/ir", "--kind", "ir", "--strategy", "aggressive")
    assert "define" in (folder / "out/ir" / d["files"][0]).read_text()
    assert "GAF4009" in gaf(folder, "emit", "m.onnx", "-o", "out", "--kind", "project", code=2).stderr


@pytest.mark.contract("C19")
def test_exit_codes(folder):
    (folder / "noise.onnx").write_bytes(os.urandom(1000))
    cases = [
        (["rum", "m.onnx"], 2, "did you mean 'run'"), (["run", "m.onnx", "--stratgy", "x"], 2, "did you mean '--strategy'"), (["run", "m.onnx", "--random", "x"], 2, "GAF1102"),
        (["bisect", "m.onnx"], 2, "GAF4009"), (["run", "m.gafm"], 2, "GAF4009"), (["run", "noise.onnx"], 3, "GAF3001"), (["run", "absent.onnx"], 7, "GAF8001"),
        (["run", "m.onnx", "--shape", "x:4,8", "--max-memory", "100B"], 6, "GAF6003"), (["run", "m.onnx", "--shape", "x:4,8", "--target", "nothing"], 2, "GAF2204"),
    ]
    for words, code, text in cases:
        assert text in gaf(folder, *words, code=code).stderr
        d = json.loads(gaf(folder, *words, "--json", code=code).stdout)
        assert d["schema"] == "gaf.error/1" and d["errors"][0]["remedy"], words
    assert gaf(folder, code=2).stderr.startswith("finds")
    assert "explain" in gaf(folder, "--help").stdout


@pytest.mark.contract("C19")
def test_interrupt_leaves_nothing_behind(folder):
    environment = dict(os.environ, AUTOFUSION_CACHE_DIR="")
    p = subprocess.Popen([GAF, "bench", "m.onnx", "--shape", "x:4,8", "--min-time", "60", "--report", "r9.json"], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=20)
    assert p.returncode == 130
    assert not list(folder.glob("r9*"))


@pytest.mark.contract("C21")
def test_quiet_colour_and_progress(folder):
    done = gaf(folder, "run", "m.onnx", "--shape", "x:4,8", "-q", env={"AUTOFUSION_STRATGY": "x"})
    assert done.stdout == "" and done.stderr == ""
    assert "AUTOFUSION_STRATEGY" in gaf(folder, "config", env={"AUTOFUSION_STRATGY": "x"}).stderr
    assert "\033[" not in gaf(folder, "run", "m.onnx", "--stratgy", code=2).stderr  # a pipe is no terminal
    always = ["bench", "m.onnx", "--shape", "x:4,8", "--runs", 2, "--min-time", 0, "--color", "always"]
    assert "\033[" in gaf(folder, *always).stdout
    assert "\r" not in gaf(folder, *always).stderr
    if shutil.which("script"):  # with a terminal: coloured, unless NO_COLOR says no
        shown = ["script", "-qec", f"{GAF} run m.onnx --stratgy", "/dev/null"]
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        assert b"\033[31m" in subprocess.run(shown, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60).stdout
        assert b"\033[31m" not in subprocess.run(shown, cwd=folder, env={**environment, "NO_COLOR": "1"}, stdin=subprocess.DEVNULL, capture_output=True, timeout=60).stdout


def test_model_from_stdin(folder):
    done = subprocess.run([GAF, "run", "-", "--shape", "x:2,8", "--json"], cwd=folder, input=(folder / "m.onnx").read_bytes(), capture_output=True, timeout=120)
    assert json.loads(done.stdout)["outputs"][0]["shape"] == [2, 16]


def test_full_disk_behind_a_redirection(folder):
    with open("/dev/full", "w") as full:
        assert subprocess.run([GAF, "config"], cwd=folder, stdout=full, stderr=subprocess.PIPE, timeout=60).returncode == 7
