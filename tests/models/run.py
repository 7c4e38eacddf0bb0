"""./dev models [NAME...] [--engine gaf|ort] [--fused]: real models on real inputs. Each answer is judged, and each output compared with
ONNX Runtime's. A model counts as right when every case is, and its line says how many kernels ran and how many ops outside."""

import argparse
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cases
import fetch

# Of outputs against ONNX Runtime, relative to the largest magnitude of the output: float32 sums in another order.
TOLERANCE = 1e-4


class OnnxRuntime:
    def __init__(self, path):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.about = "ONNX Runtime"

    def run(self, feed):
        return self.session.run(None, feed)


class Gaf:
    def __init__(self, path):
        import graph_autofusion

        self.model = graph_autofusion.compile(path)
        self.inputs = self.model.input_names
        stats = self.model.stats()
        self.about = f"{stats['kernels']} kernels, {stats['externs']} extern"

    def run(self, feed):
        outputs = self.model.run(feed)
        return [outputs[name] for name in self.model.output_names]


def difference(got, want):
    """Largest difference, as a fraction of the largest magnitude of that output."""
    worst = 0.0
    for a, b in zip(got, want, strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            return float("inf")
        if b.size:
            gap = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)).max()
            worst = max(worst, float(gap) / max(1.0, float(np.abs(np.asarray(b, np.float64)).max())))
    return worst


def run_model(name, engine_class):
    """(cases passed, cases failed)"""
    engine = reference = None
    passed = failed = 0
    for case in cases.MODELS[name]():
        try:
            if engine is None:
                engine, reference = engine_class(case.model), OnnxRuntime(case.model)
                print(f"{name}: {os.path.basename(case.model)}, {engine.about}", flush=True)
            feed = {engine.inputs[0] if key is None else key: value for key, value in case.inputs.items()}
            outputs = engine.run(feed)
            seen, right = case.judge(outputs)
            gap = difference(outputs, reference.run(feed))
            right = right and gap <= TOLERANCE
            seen += f"   |difference| {gap:.1e}"
        except fetch.NoNetwork:
            raise
        except Exception as e:  # a broken case must not hide the others
            seen, right = f"{type(e).__name__}: " + "\n       ".join(str(e).splitlines()[:4]), False
        passed, failed = passed + right, failed + (not right)
        print(f"  {'ok  ' if right else 'FAIL'} {seen}", flush=True)
    return passed, failed


def run_apart(name, engine):
    """The same in a process of its own: a model that crashes is one failure and does not end the others."""
    done = subprocess.run([sys.executable, __file__, name, "--engine", engine], stdout=subprocess.PIPE, text=True)
    *lines, last = done.stdout.splitlines() or [""]
    counts = re.fullmatch(r"(\d+) passed, (\d+) failed", last)
    print("\n".join(lines if counts else lines + [last]), flush=True)
    if counts:
        return int(counts[1]), int(counts[2])
    print(f"  FAIL {name} ended with {'signal ' + str(-done.returncode) if done.returncode < 0 else 'exit code ' + str(done.returncode)}", flush=True)
    return 0, 1


def main():
    parser = argparse.ArgumentParser(prog="./dev models", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(cases.MODELS))
    parser.add_argument("--engine", choices=("gaf", "ort"), default="gaf")
    parser.add_argument("--fused", action="store_true", help="check the fused ONNX files instead, see fused.py")
    args = parser.parse_args()
    unknown = [n for n in args.names if n not in cases.MODELS]
    if unknown:
        parser.error(f"unknown model '{unknown[0]}': one of {', '.join(cases.MODELS)}")
    if args.fused:
        import fused

        return fused.main(args.names)
    passed = failed = 0
    names = args.names or list(cases.MODELS)
    try:
        for name in names:
            if len(names) > 1:
                p, f = run_apart(name, args.engine)
            else:
                p, f = run_model(name, Gaf if args.engine == "gaf" else OnnxRuntime)
            passed, failed = passed + p, failed + f
    except fetch.NoNetwork as e:
        print(e, file=sys.stderr)
        return 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
