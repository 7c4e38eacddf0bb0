"""The documentation's commands do what it says: every fenced `sh` and `python` block of README.md and docs/*.md runs, in an empty
folder that holds the small models block.onnx and softmax_f16.onnx, and must end well. Blocks of other languages (`text`, `cpp`) are not run. Links
between the documents lead somewhere."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GAF_BUILD", ROOT / "build" / "release"))
PAGES = [p for p in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))] if p.exists()]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.M | re.S)


def blocks():
    for page in PAGES:
        text = page.read_text()
        for m in BLOCK.finditer(text):
            line = text.count("\n", 0, m.start()) + 1
            yield pytest.param(m[1], m[2], id=f"{page.relative_to(ROOT)}:{line}")


@pytest.fixture()
def folder(tmp_path):
    """LayerNormalization, SiLU, Gemm on [4, 64]; and a softmax of float16."""
    rng = np.random.default_rng(3)
    weights = {"g": rng.standard_normal(64), "b": rng.standard_normal(64), "w": rng.standard_normal((64, 32)) / 8, "c": rng.standard_normal(32)}
    nodes = [helper.make_node("LayerNormalization", ["x", "g", "b"], ["n"], "norm", axis=-1), helper.make_node("Sigmoid", ["n"], ["s"], "sigmoid"), helper.make_node("Mul", ["n", "s"], ["u"], "gate"),
             helper.make_node("Gemm", ["u", "w", "c"], ["y"], "linear")]
    info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
    graph = helper.make_graph(nodes, "block", [info("x", [4, 64])], [info("y", [4, 32])], [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "block.onnx")
    half = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT16, [8, 100])  # noqa: E731
    softmax = helper.make_graph([helper.make_node("Softmax", ["x"], ["y"], "softmax", axis=-1)], "softmax", [half("x")], [half("y")])
    onnx.save(helper.make_model(softmax, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "softmax_f16.onnx")
    return tmp_path


@pytest.mark.parametrize("language, code", list(blocks()))
def test_documented_commands_run(language, code, folder):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AUTOFUSION_")}
    environment.update({"AUTOFUSION_CACHE_DIR": str(folder / "cache"), "PATH": f"{BUILD}{os.pathsep}{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                        "PYTHONPATH": f"{BUILD / 'python'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"})
    command = ["bash", "-e", "-u", "-c", code] if language == "sh" else [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout, "the reader sees nothing"


def test_links_lead_somewhere():
    broken = []
    for page in PAGES:
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
            if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)} -> {target}")
    assert not broken
