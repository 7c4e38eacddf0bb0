"""./dev bench --peak [PATTERN ...]: the share of the FMA peak that compute-bound cases reach, one thread.

Calls of the model and bursts of multiply-adds from registers take turns of a few milliseconds on one core, and each call is held
against the bursts beside it. A core lowers its clock under AVX-512 load, and by more the more data moves, so a peak taken at
another time (roofline) is one that no kernel meets: it is printed for comparison. Needs the cases that `./dev bench` exported."""

import ctypes
import fnmatch
import json
import os
import pathlib
import statistics
import sys
import time

SLICE_S = 0.004
ROUNDS = 41


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def share(case, spend, flops):
    """(median seconds of a call, median share of the peak beside it)"""
    import numpy as np

    import graph_autofusion as gaf

    with np.load(case / "inputs.npz") as z:
        inputs = {k: z[k] for k in z.files}
    model = gaf.compile(str(case / "model.onnx"), threads=1)
    out = model.run(inputs)
    repeats = max(1, round(SLICE_S / seconds(lambda: model.run(inputs, out=out))))

    few = min(flops, 5e8)

    def burst():  # flops a second
        return few / seconds(lambda: spend(few))

    def calls():
        for _ in range(repeats):
            model.run(inputs, out=out)

    took, shares, before = [], [], burst()
    for _ in range(ROUNDS):
        took.append(seconds(calls) / repeats)
        after = burst()
        shares.append(flops / took[-1] / ((before + after) / 2))
        before = after
    return statistics.median(took), statistics.median(shares)


def main():
    cache, library, *patterns = sys.argv[1:]
    spend = ctypes.CDLL(library).spend_fma
    spend.argtypes, spend.restype = [ctypes.c_double], None
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for case in sorted(pathlib.Path(cache).iterdir()):
        if not (case / "meta.json").exists():
            continue
        meta = json.loads((case / "meta.json").read_text())
        if meta["group"] == "compute" and any(fnmatch.fnmatch(case.name, p) for p in patterns or ["*"]):
            took, part = share(case, spend, meta["flops"])
            print(f"{case.name:34} {1e3 * took:9.3f} ms {meta['flops'] / took / 1e9:7.1f} GF/s {100 * part:5.1f} % of the FMA peak in turns", flush=True)


if __name__ == "__main__":
    main()
