"""What the repository promises about its own shape: which folder may include which, where third-party headers may be named,
how long a file may be, how each file begins, and that nothing names the machine it was written on."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A folder may include only these folders; frontend, rewrite, plan, lower and codegen meet in compile.cpp.
MAY_INCLUDE = {
    "base": {"base"},
    "ir": {"base", "ir"},
    "ops": {"base", "ir", "ops"},
    "frontend": {"base", "ir", "ops", "frontend"},
    "rewrite": {"base", "ir", "ops", "rewrite"},
    "plan": {"base", "ir", "ops", "plan"},
    "lower": {"base", "ir", "ops", "lower"},
    "runtime": {"base", "runtime"},
    "codegen": {"base", "ir", "codegen"},
}
ALSO = {"codegen": {"runtime/artifact.h"}}  # single headers beyond the row

# Third-party headers and the only places that may name them.
FENCES = {
    r"llvm[/-]": ("src/codegen/cpu/",),
    r"protozero/": ("src/frontend/",),
    r"yaml-cpp/": ("src/base/yaml.",),
    r"nlohmann/": ("src/base/json.",),
    r"spdlog/": ("src/base/log.cpp",),
    r"CLI/": ("src/cli/", "src/main.cpp"),
    r"nanobind/": ("src/python/",),
}

MOST_LINES = 400
LONGER = {}  # file -> why it is in one piece

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def tracked(*patterns):
    """Files that are in the repository or about to be."""
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


SOURCES = tracked("src/*.h", "src/*.cpp")


def includes(name):
    return [(quote, target) for quote, target in INCLUDE.findall((ROOT / name).read_text())]


def folder_faults(name, found):
    folder = name.split("/")[1]
    own = MAY_INCLUDE.get(folder)
    if own is None:  # compile, cli, main, python, api: all
        return []
    faults = []
    for quote, target in found:
        other = target.split("/")[0]
        known = other in MAY_INCLUDE or target in ("compile.h",) or other in ("cli", "python", "api", "gaf")
        if quote == '"' and known and other not in own and target not in ALSO.get(folder, ()):
            faults.append(f"{name} includes {target}")
    return faults


def fence_faults(name, found):
    return [f"{name} includes {target}" for _, target in found for fence, places in FENCES.items() if re.match(fence, target) and not name.startswith(places)]


def test_folders_include_only_their_row():
    assert [f for name in SOURCES for f in folder_faults(name, includes(name))] == []


def test_third_party_headers_stay_behind_their_fence():
    assert [f for name in SOURCES for f in fence_faults(name, includes(name))] == []


def test_the_two_checks_can_fail():
    assert folder_faults("src/plan/x.cpp", [('"', "lower/lower.h")]) == ["src/plan/x.cpp includes lower/lower.h"]
    assert folder_faults("src/codegen/x.cpp", [('"', "runtime/cache.h")]) and not folder_faults("src/codegen/x.cpp", [('"', "runtime/artifact.h")])
    assert fence_faults("src/plan/x.cpp", [("<", "llvm/IR/Module.h")]) and not fence_faults("src/codegen/cpu/x.cpp", [("<", "llvm/IR/Module.h")])


def test_files_are_short():
    long = {n: len((ROOT / n).read_text().splitlines()) for n in SOURCES}
    assert {n: k for n, k in long.items() if k > MOST_LINES and n not in LONGER} == {}
    assert [n for n in LONGER if long.get(n, 0) <= MOST_LINES] == [], "no longer long: take them off the list"


def test_files_say_what_they_are_for():
    assert [n for n in SOURCES if not (ROOT / n).read_text().startswith("//")] == []


# Written apart, so that this file does not name them either.
FORBIDDEN = [re.compile(p) for p in ("/wo" + "rk/", r"(?<![\w-])\.\./sha" + "red", r"/op" + "t/(gafvenv|models|pypi)", "/ro" + "ot/", r"https?://(10|127|172|192)\.")]


@pytest.mark.parametrize("kind", ["*.md", "src/*", "tests/*", "python/*", "bench/*", "examples/*", "docs/*", "*"])
def test_nothing_names_the_machine(kind):
    faults = []
    for name in tracked(kind):
        text = (ROOT / name).read_text(errors="replace")
        faults += [f"{name}: {m.group()}" for pattern in FORBIDDEN for m in [pattern.search(text)] if m]
    assert faults == []


def test_promised_names_are_all_listed():
    rows = [line.split()[0] for line in (ROOT / "tests/contract.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert len(rows) == 160 and len(set(rows)) == 160
