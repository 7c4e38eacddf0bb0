"""./dev demo [FILE...]: what type is each file? Google's magika model reads its first and last kilobyte and answers. The same
model runs three ways, one thread each, in turns: unfused (one kernel an operator), fused, and in ONNX Runtime. Without files it
takes some of this repository, a program of the system and a picture that it draws."""

import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "models"))

import numpy as np
import onnxruntime
from PIL import Image, ImageDraw

import graph_autofusion as gaf
from cases import magika_input, magika_labels, magika_model
from fetch import NoNetwork

ROUNDS = 15  # timings of each way, interleaved; the median is shown
MOST_DIFFERENCE = 1e-5  # of a probability, against ONNX Runtime


def default_files(folder):
    """(file, type that the model must say)"""
    drawn = pathlib.Path(folder) / "drawn.png"
    picture = Image.new("RGB", (200, 120), "white")
    ImageDraw.Draw(picture).ellipse((40, 20, 160, 100), fill="teal", outline="black")
    picture.save(drawn)
    return [
        (ROOT / "src/compile.cpp", "cpp"),
        (ROOT / "examples/demo.py", "python"),
        (ROOT / "targets/x86-64-avx2.json", "json"),
        (ROOT / "dev", "shell"),
        (ROOT / "pyproject.toml", "toml"),
        (pathlib.Path("/bin/ls"), "elf"),
        (drawn, "png"),
    ]


def ort_session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def time_in_turns(ways):
    """Median milliseconds of each function; the order rotates, so that no way always runs after the same other."""
    times = [[] for _ in ways]
    for r in range(ROUNDS):
        for i in range(len(ways)):
            k = (i + r) % len(ways)
            start = time.perf_counter()
            ways[k]()
            times[k].append((time.perf_counter() - start) * 1e3)
    return [statistics.median(t) for t in times]


def main():
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            files = [(pathlib.Path(f), None) for f in sys.argv[1:]]
        else:
            files = default_files(folder)
        contents = []
        for path, want in files:
            try:
                contents.append((path, want, path.read_bytes()))
            except OSError as e:
                print(f"cannot read {path}: {e.strerror}", file=sys.stderr)
                return 1
    try:
        model, labels = magika_model(), magika_labels()
    except NoNetwork as e:
        print(e, file=sys.stderr)
        return 1
    fused = gaf.compile(model, threads=1)
    unfused = gaf.compile(model, threads=1, level=0)
    ort = ort_session(model)

    print(f"{'file':28} {'type':10} {'prob.':>6}  {'unfused ms':>10} {'fused ms':>9} {'ORT ms':>7}  {'difference':>10}  kernels")
    faults, totals, worst = [], np.zeros(3), 0.0
    for path, want, content in contents:
        feed = {"bytes": magika_input(content)}
        answer = next(iter(fused.run(feed).values()))
        plain = next(iter(unfused.run(feed).values()))
        reference = ort.run(None, feed)[0]
        difference = float(max(np.abs(answer - reference).max(), np.abs(plain - reference).max()))
        milliseconds = time_in_turns([lambda: unfused.run(feed), lambda: fused.run(feed), lambda: ort.run(None, feed)])
        totals += milliseconds
        worst = max(worst, difference)
        best = int(answer[0].argmax())
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name if want else str(path)
        print(f"{name:28} {labels[best]:10} {answer[0][best]:6.1%}  {milliseconds[0]:10.2f} {milliseconds[1]:9.2f} {milliseconds[2]:7.2f}  {difference:10.1e}"
              f"  {unfused.stats()['kernels']} -> {fused.stats()['kernels']}", flush=True)
        if want and labels[best] != want:
            faults.append(f"{name} is {want}, not {labels[best]}")
        if not difference <= MOST_DIFFERENCE:
            faults.append(f"{name}: differs from ONNX Runtime by {difference:.1e}")
    print(f"fused is {totals[0] / totals[1]:.2f}x as fast as unfused and {totals[2] / totals[1]:.2f}x as fast as ONNX Runtime; largest difference {worst:.1e}")
    for fault in faults:
        print(f"WRONG: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
