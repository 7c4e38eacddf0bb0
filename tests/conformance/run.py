#!/usr/bin/env python3
"""The ONNX node tests through the reference evaluation: ./dev conformance [--show] [--class CLASS] [PATTERN ...]

Writes the cases that the onnx package holds as code into build/conformance/cases (once), runs them, and prints how many pass
by class. --show lists the failures; PATTERN (with * and ?) selects cases by name.
"""
import argparse
import collections
import fnmatch
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cases(folder):
    index = folder / "index.json"
    if not index.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, Path(__file__).with_name("generate_cases.py"), folder], check=True, stdout=subprocess.DEVNULL)
    return json.loads(index.read_text())


def kind(row):
    if not row["plain"]:
        return "other types, domains or subgraphs"
    return "expanded (float32, int, bool)" if row["expanded"] else "operators (float32, int, bool)"


def main():
    parser = argparse.ArgumentParser(prog="./dev conformance", description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="release")
    parser.add_argument("--runner", help="the runner's path, if not build/<preset>/conformance_runner")
    parser.add_argument("--show", action="store_true", help="list the failures")
    parser.add_argument("--expect", type=int, help="fail if fewer cases pass")
    parser.add_argument("pattern", nargs="*")
    options = parser.parse_args()
    runner = Path(options.runner or ROOT / "build" / options.preset / "conformance_runner")
    if not runner.exists():
        sys.exit(f"{runner} is missing: run ./dev build first")
    folder = ROOT / "build" / "conformance" / "cases"
    rows = {r["name"]: r for r in cases(folder)}
    if options.pattern:
        rows = {n: r for n, r in rows.items() if any(fnmatch.fnmatch(n, p) for p in options.pattern)}
    text = "".join(f"{r['name']} {r['rtol']} {r['atol']}\n" for r in rows.values())
    out = subprocess.run([runner, folder], input=text, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    passed, total = collections.Counter(), collections.Counter()
    failures = []
    for line in out.stdout.splitlines():
        ok, rest = line.startswith("ok "), line.split(" ", 1)[1]
        name = rest.split(":", 1)[0]
        total[kind(rows[name])] += 1
        passed[kind(rows[name])] += ok
        if not ok:
            failures.append(rest)
    if options.show:
        print("\n".join(sorted(failures)))
    for k in sorted(total):
        print(f"{passed[k]:5} of {total[k]:4} pass: {k}")
    done, wanted = sum(passed.values()), len(rows)
    print(f"{done} passed, {wanted - done} failed")
    if options.expect is not None:
        return 0 if done >= options.expect else 1
    return 0 if done == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
