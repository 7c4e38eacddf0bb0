"""Adds up the results of one test run: build/<preset>/results holds a JUnit file a C++ test program, one of ctest for
programs that died before they wrote theirs, and one of pytest. Prints what failed and a closing line; exit 1 on failure."""

import pathlib
import sys
import xml.etree.ElementTree as xml


def cases(folder):
    """(name, "passed" | "failed" | "skipped", message, properties) of each test of the run."""
    for file in sorted(folder.glob("*.xml")):
        for case in xml.parse(file).iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            bad = [x for x in case if x.tag in ("failure", "error")]
            skipped = case.get("status") == "notrun" or case.get("result") == "skipped" or case.find("skipped") is not None
            properties = {p.get("name"): p.get("value") for p in case.iter("property")}
            message = "\n".join((x.text or x.get("message") or "") for x in bad)
            yield name, "failed" if bad else "skipped" if skipped else "passed", message, properties
    # A program that crashed or ran out of time leaves no file of its own, or says less than ctest does.
    junit = folder / "ctest.junit"
    if not junit.exists():
        yield "ctest", "failed", "ctest did not run; see build/log", {}
        return
    for case in xml.parse(junit).iter("testcase"):
        own = folder / f"test_{case.get('name')}.xml"
        if case.get("status") == "fail" and not (own.exists() and any_failed(own)):
            output = case.findtext("system-out") or ""
            yield f"test_{case.get('name')}", "failed", "\n".join(output.splitlines()[-25:]), {}


def any_failed(file):
    return any(x.tag in ("failure", "error") for case in xml.parse(file).iter("testcase") for x in case)


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    told = {}  # what tests count as they go ("count TITLE: WHAT"), added up: title -> what -> number
    for name, outcome, message, properties in cases(pathlib.Path(sys.argv[1])):
        counts[outcome] += 1
        for key, number in properties.items():
            if key.startswith("count "):
                title, what = key.removeprefix("count ").rsplit(": ", 1)
                told.setdefault(title, {}).setdefault(what, 0)
                told[title][what] += int(number)
        if outcome == "failed":
            print(f"FAILED {name}")
            print("    " + "\n    ".join(message.strip().splitlines()[:25]))
    for title, numbers in sorted(told.items()):
        print(f"  {title}: " + ", ".join(f"{number} {what}" for what, number in numbers.items()))
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
