"""The CMake package: what `cmake --install` puts down is enough for a program of somebody else's to find it, compile against
its header, link and run."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GAF_BUILD", ROOT / "build" / "release"))

MODEL = """graph @g(size batch, %0 "x": f32[batch,3]) -> (%4 "y") {
  %1 = constant {value=[1.0,2.0,3.0,4.0,5.0,6.0]} : f32[3,2]  # "w"
  %2 = MatMul(%0, %1) : f32[batch,2]  # "mm"
  %3 = Add(%2, %2) : f32[batch,2]  # "twice"
  %4 = Relu(%3) : f32[batch,2]  # "act"
}
"""


def sh(*args, **kw):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, **kw)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The example program, built against an installed copy of the package."""
    if shutil.which("cmake") is None or not (BUILD / "libgaf.so").exists():
        pytest.skip("needs cmake and a build with the C++ library")
    work = tmp_path_factory.mktemp("package")
    sh("cmake", "--install", BUILD, "--prefix", work / "prefix")
    sh("cmake", "-S", ROOT / "examples" / "cpp", "-B", work / "build", f"-DCMAKE_PREFIX_PATH={work / 'prefix'}")
    sh("cmake", "--build", work / "build")
    return work


def test_the_example_runs(example):
    (example / "m.gaf").write_text(MODEL)
    out = sh(example / "build" / "example", example / "m.gaf", 5, env={**os.environ, "AUTOFUSION_CACHE_DIR": ""})
    assert out.splitlines() == ["3 kernels before, 1 after", "y: float32, 10 elements, first 18"]


def test_the_kernel_example_prints_a_plan(example):
    (example / "m.gaf").write_text(MODEL)
    out = sh(example / "build" / "kernel", example / "m.gaf", "mm", "twice", "act")
    assert out.startswith("matmul_add_relu_fused: predicted ") and "fits" in out and out.endswith("compiled: 2 inputs\n")
    done = subprocess.run([example / "build" / "kernel", example / "m.gaf", "mm", "act"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout.startswith("no: cycle: 'act' depends on the other nodes through 'twice'")


def test_errors_reach_the_program(example):
    done = subprocess.run([example / "build" / "example", example / "no.onnx"], capture_output=True, text=True)
    assert done.returncode == 1 and "GAF8001" in done.stderr and "remedy:" in done.stderr


def test_headers_alone_are_installed(example):
    """No header of the library's inside, and no third-party one, is needed or named."""
    headers = list((example / "prefix" / "include").rglob("*.h"))
    assert {h.name for h in headers} >= {"gaf.h", "types.h"}
    for h in headers:
        for line in h.read_text().splitlines():
            if line.startswith("#include"):
                assert '"gaf/' in line or "<" in line and "/" not in line, f"{h.name}: {line}"


def test_only_the_interface_is_exported(example):
    library = next((example / "prefix").rglob("libgaf.so"))
    symbols = sh("nm", "-DC", "--defined-only", library).splitlines()
    ours = [s.split(maxsplit=2)[2] for s in symbols if s.split(maxsplit=2)[1] == "T"]
    assert ours and [s for s in ours if "gaf::v0::" not in s] == []
