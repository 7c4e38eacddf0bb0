"""How many of the promised names of tests/contract.txt hold: a name holds when a test that carries its id passed in the last
run. C++ tests carry ids by RecordProperty("contract", "C1 C19"), text tests by a line `# contract: N8`, Python tests by
@pytest.mark.contract("P1")."""

import pathlib
import sys

import summary


def promised():
    """id -> (name, section, milestone)"""
    rows = {}
    for line in (pathlib.Path(__file__).parent / "contract.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            number, milestone, section, name = line.split(maxsplit=3)
            rows[number] = (name, section, milestone)
    return rows


def main():
    names = promised()
    holds, broken = set(), set()
    for test, outcome, _, properties in summary.cases(pathlib.Path(sys.argv[1])):
        for number in properties.get("contract", "").replace(",", " ").split():
            if number not in names:
                print(f"{test} carries {number}, which is not promised", file=sys.stderr)
                return 1
            if outcome == "passed":
                holds.add(number)
            elif outcome == "failed":
                broken.add(number)
    holds -= broken  # one failing test that carries the id is enough
    if "--missing" in sys.argv:
        for number, (name, section, milestone) in names.items():
            if number not in holds:
                print(f"{number:4} {milestone} {section:7} {name}{'   (a test fails)' if number in broken else ''}")
    for milestone in sorted({m for _, _, m in names.values()}):
        ids = [n for n, row in names.items() if row[2] == milestone]
        print(f"{milestone}  {sum(n in holds for n in ids)} of {len(ids)}")
    print(f"{len(holds)} of {len(names)} promised names hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
