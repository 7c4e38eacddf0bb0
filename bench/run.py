"""./dev bench [PATTERN ...] [--peers ort,gaf,gaf-unfused] [--threads N] [--peak]: the suite of bench/peers, side by side, and the roofline.

PATTERN is a group (micro, compute, models) or a case name with wildcards; default: micro and compute. The peers get an environment
of their own (.cache/bench: torch to make the models, ONNX Runtime and whatever else --peers names); `gaf` is this build. Results,
models and logs stay in build/bench/. See bench/peers/README.md for how the numbers are taken."""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEERS = ROOT / "bench" / "peers"
OUT = ROOT / "build" / "bench"
PACKAGES = {"ort": ["onnxruntime"], "openvino": ["openvino"], "xla": ["jax", "jaxlib"], "iree": ["iree-base-compiler", "iree-base-runtime"], "tvm": ["apache-tvm"]}


def pinned(names):
    """The versions that bench/peers/requirements.txt states."""
    lines = [line.strip() for line in (PEERS / "requirements.txt").read_text().splitlines() if "==" in line and not line.startswith("#")]
    return [line for line in lines if line.split("==")[0] in names]


def environment(peers):
    """A virtual environment with what the suite and the peers need; this build joins through a path file."""
    home = ROOT / ".cache" / "bench"
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    wanted = {"torch", "numpy", "onnx", "onnxscript", *(p for peer in peers for p in PACKAGES.get(peer, []))}
    for name in ("torch", None):  # torch first: later packages must not choose another
        chosen = [p for p in pinned(wanted) if (p.split("==")[0] == "torch") == (name == "torch")]
        subprocess.run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *chosen, *([] if name else ["ml_dtypes"])], check=True)
    site = subprocess.run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True).stdout.strip()
    (pathlib.Path(site) / "graph_autofusion.pth").write_text(f"{ROOT}/build/release/python\n")
    return python


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--peers", default="ort,gaf,gaf-unfused")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peak", action="store_true", help="only: gaf against the FMA peak, in turns of milliseconds")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    python = environment(args.peers.split(","))
    roofline = OUT / "roofline"
    subprocess.run(["cc", "-O3", "-march=native", "-pthread", str(PEERS / "roofline.c"), "-o", str(roofline)], check=True)
    (OUT / "roofline.json").write_bytes(subprocess.run([str(roofline), str(args.threads)], capture_output=True, check=True).stdout)
    if args.peak:
        library = OUT / "roofline.so"
        subprocess.run(["cc", "-O3", "-march=native", "-pthread", "-shared", "-fPIC", str(PEERS / "roofline.c"), "-o", str(library)], check=True)
        roof = json.loads((OUT / "roofline.json").read_text())
        print(f"roofline: {roof['fma_gflops']} GF/s from registers, {roof['fma_fed_gflops']} fed from L1 as a matrix product must be")
        subprocess.run([str(python), str(ROOT / "bench" / "peak.py"), str(OUT / "cache"), str(library), *args.patterns], check=True)
        return
    results = OUT / f"t{args.threads}.json"
    patterns = args.patterns or ["micro", "compute"]
    run = [str(python), str(PEERS / "run.py")]
    subprocess.run([*run, "--cache", str(OUT / "cache"), "--out", str(results), "--peers", args.peers, "--threads", str(args.threads), *patterns], check=True)
    subprocess.run([*run, "--table", str(results), "--roofline", str(OUT / "roofline.json")], check=True)
    print(json.dumps({"results": str(results.relative_to(ROOT)), "roofline": json.loads((OUT / "roofline.json").read_text())}))


if __name__ == "__main__":
    main()
