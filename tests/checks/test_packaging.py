"""pip can install the project from its folder: the build back end answers with the right metadata, and all lists of pinned
packages say the same versions."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

try:
    import tomllib
except ImportError:  # Python 3.10
    tomllib = pytest.importorskip("tomli")


def pins():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_pins_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for requirement in project["build-system"]["requires"]:
        name, version = requirement.split("==")
        assert pins()[name] == version


@pytest.mark.contract("D10")
def test_pip_installs_the_folder_editable(tmp_path):
    """As far as pip goes without compiling: the build back end prepares an editable install that needs numpy alone."""
    pytest.importorskip("scikit_build_core")
    script = "import sys; from scikit_build_core.build import *; print(prepare_metadata_for_build_editable(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", script, tmp_path], cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    info = tmp_path / done.stdout.split()[-1]
    metadata = (info / "METADATA").read_text()
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert "Name: graph-autofusion" in metadata and needed == ["Requires-Dist: numpy"]
    assert "gaf = graph_autofusion_command:main" in (info / "entry_points.txt").read_text()
    assert (ROOT / "python/graph_autofusion/py.typed").exists()
    licences = [line.split(": ")[1] for line in metadata.splitlines() if line.startswith("License-File:")]
    assert licences == ["LICENSE", "NOTICE"]
