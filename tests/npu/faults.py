"""Six kinds of faults, planted into generated text: each must be found by the checks that a right text passes. A plant changes
what the emitter wrote by its form, so that a text of another form fails loudly instead of going unharmed."""

import dataclasses
import re

UB_END = 184 * 1024
MEMORY_END = {"VECCALC": UB_END, "A1": 512 * 1024, "B1": 512 * 1024, "Vec": UB_END, "Mat": 512 * 1024}
# Where a tile is placed: indent and name, memory, byte offset. PTO says the memory in the line before.
ASCENDC_PLACE = re.compile(r"^ *LocalTensor<\w+> (?P<name>\w+)\(TPosition::(?P<where>\w+), (?P<at>.+), \d+\);$", re.M)
PTO_PLACE = re.compile(r"^ *Tile<TileType::(?P<where>\w+), .*\n *TASSIGN(?:\((?P<name>\w+), (?P<at>.+)\)|<(?P<fixed>\d+)>\((?P<constant>\w+)\));$", re.M)


class Placed:
    """The tiles of UB or L1 in a text, in order, and a way to put one elsewhere."""

    def __init__(self, text, language):
        self.text, self.language = text, language
        pattern = ASCENDC_PLACE if language == "ascendc" else PTO_PLACE
        self.found = [m for m in pattern.finditer(text) if m["where"] in MEMORY_END]
        assert len(self.found) >= 2, "the text places its tiles in another form"

    def at(self, m):
        return m["at"] or m["fixed"]

    def moved(self, m, to):
        line = m.group()
        if self.language == "ascendc":
            changed = line.replace(f", {self.at(m)}, ", f", {to}, ")
        else:  # the form that is checked when it runs, not when it compiles
            start = line[: line.rindex("TASSIGN")]
            changed = f"{start}TASSIGN({m['name'] or m['constant']}, {to});"
        assert changed != line
        return self.text[: m.start()] + changed + self.text[m.end() :]


def wrong_ring_slot(text, language):
    placed = Placed(text, language)
    ring = next(m for m in placed.found if "% 2" in placed.at(m))  # the first that is loaded in turns
    return placed.moved(ring, placed.at(ring).replace("% 2", "% 1"))


def overlap(text, language):
    placed = Placed(text, language)
    return placed.moved(placed.found[-1], placed.at(placed.found[-2]))


def misalignment(text, language):
    placed = Placed(text, language)
    return placed.moved(placed.found[-1], placed.at(placed.found[-1]) + " + 8")


def overflow(text, language):
    placed = Placed(text, language)
    last = placed.found[-1]
    return placed.moved(last, f"{placed.at(last)} + {MEMORY_END[last['where']] - 64}")


def missing_reduce(text, language):
    """Rows are not summed; or, of a product, the steps of K."""
    for pattern, put in ((r"^ *(?:long_)?reduce_add\(.*\n", ""), (r"^ *TROWSUM\(.*\n", ""), (r"\bmmad<true>\(", "mmad<false>("), (r"TMATMUL_ACC\((\w+), ", "TMATMUL(")):
        # Inside the kernel only: helpers above it call each other by the same names.
        head, kernel = text[: text.index('extern "C"')], text[text.index('extern "C"') :]
        changed, n = re.subn(pattern, put, kernel, count=1, flags=re.M)
        if n:
            return head + changed
    raise AssertionError("nothing is reduced here")


FLAG = {
    "ascendc": re.compile(r"(?:Set|Wait)Flag<HardEvent::(?P<source>[A-Z0-9]+)_(?P<to>[A-Z0-9]+)>\((?P<id>.*)\);"),
    "pto": re.compile(r"(?:set|wait)_flag\(PIPE_(?P<source>[A-Z0-9]+), PIPE_(?P<to>[A-Z0-9]+), event_t\((?P<id>.*)\)\);"),
}


def one_id_for_two(text, language):
    """Two events of one source pipe, to different pipes, get the ids of one."""
    flags = list(FLAG[language].finditer(text))
    for a in flags:
        for b in flags:
            if a["source"] == b["source"] and a["to"] != b["to"] and "%" in a["id"] and "%" in b["id"] and a["id"] != b["id"]:
                return "\n".join(line.replace(f"{b['id']})", f"{a['id']})", 1) if (m := FLAG[language].search(line)) and (m["source"], m["to"], m["id"]) == (b["source"], b["to"], b["id"]) else line for line in text.splitlines()) + "\n"
    raise AssertionError("no two events of one source pipe")


PLANTS = {
    "wrong-ring-slot": wrong_ring_slot,
    "overlap": overlap,
    "misalignment": misalignment,
    "overflow": overflow,
    "missing-reduce": missing_reduce,
    "one-id-for-two": one_id_for_two,
}
NAMES = tuple(PLANTS)


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    language: str

    def plant(self, text):
        changed = PLANTS[self.name](text, self.language)
        assert changed != text, f"{self.name}: nothing changed"
        return changed

    @staticmethod
    def signs(found):
        """What the checks said of a faulty text."""
        signs = [f"{kind}: {next(iter(found[kind]))}" for kind in ("misuse", "undefined", "races", "schedules") if found[kind]]
        return signs + (["values"] if found["ulp"] > 2 else [])


def of(kernel, language):
    """The faults that this kernel carries in the test."""
    return [Fault(name, language) for name in NAMES] if kernel.faults else []
