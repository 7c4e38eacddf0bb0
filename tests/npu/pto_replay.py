"""Runs the control flow of `.pto` text (level 2, destination-passing, inside MLIR's scf and arith) and lists what it would have the
pipes do, in the form in which the runner dumps a trace. So the text form is compared with the C++ form, whose values are checked.
An operation, type or spelling that is not known here is an error: this is the closed list of the text form."""

import re

SIZES = {"f16": 2, "f32": 4}
MEMORY = {"vec": "UB", "mat": "L1", "left": "L0A", "right": "L0B", "acc": "L0C", "bias": "BT"}
ORDER = ["UB", "L1", "L0A", "L0B", "L0C", "BT"]
ALIGN = {"UB": 32, "L1": 32, "L0A": 512, "L0B": 512, "L0C": 64, "BT": 64}
INSTRUCTIONS = {"tload", "tstore", "tmov", "tcvt", "texp", "trowmax", "trowsum", "trowexpandsub", "trowexpanddiv", "tmatmul", "tmatmul.acc", "tmatmul.bias"}
NAME = r"%[\w.]+"
TILE = re.compile(r"!pto\.tile_buf<loc=(\w+), dtype=(\w+), rows=(\d+), cols=(\d+), v_row=(\?|\d+), v_col=(\?|\d+), blayout=(row_major|col_major), slayout=(none_box|row_major|col_major), fractal=(512|1024), pad=0>")


class Tile:
    def __init__(self, kind, at, rows, cols):
        where, dtype, height, width, v_row, v_col = kind.groups()[:6]
        self.memory, self.at, self.size, self.type = MEMORY[where], at, SIZES[dtype], kind.group()
        self.rows, self.cols = (given if v == "?" else int(v) for v, given in ((v_row, rows), (v_col, cols)))
        assert (v_row == "?") == (rows is not None) and (v_col == "?") == (cols is not None), "a `?` for each size that is given"
        assert at % ALIGN[self.memory] == 0 and 1 <= self.rows <= int(height) and 1 <= self.cols <= int(width)

    def first(self):
        return (ORDER.index(self.memory), self.at), f"{self.memory}+{self.at}"

    def bytes(self):
        return self.rows * self.cols * self.size


class View:
    def __init__(self, buffer, at, size, shape, strides):
        self.buffer, self.at, self.size, (self.rows, self.cols), self.strides = buffer, at, size, shape, strides
        assert strides[1] == 1

    def first(self):
        return (len(ORDER) + self.buffer, self.at), f"g{self.buffer}+{self.at * self.size}"

    def bytes(self):
        return self.rows * self.cols * self.size


def blocks(lines):
    """[(line, [block, ...])]: a line that opens regions has them; `case` and `else` continue the one before."""
    stack = [[]]
    for line in (x.strip() for x in lines):
        if line.startswith("//") or not line:
            continue
        if line.startswith("}"):
            stack.pop()
            line = line[1:].strip()
        if line.startswith(("case ", "default", "else")) and line.endswith("{"):
            stack[-1][-1][1].append((line[:-1].strip(), []))
            stack.append(stack[-1][-1][1][-1][1])
        elif line.endswith("{"):
            stack[-1].append((line[:-1].strip(), [("", [])]))
            stack.append(stack[-1][-1][1][0][1])
        elif line:
            stack[-1].append((line, []))
    assert len(stack) == 1, "braces do not match"
    return stack[0]


class Replay:
    def __init__(self, block, blocks_in_all):
        self.block, self.blocks, self.values, self.steps = block, blocks_in_all, {}, []

    def run(self, body):
        for line, regions in body:
            self.statement(line, regions)

    def names(self, text):
        return [self.values[n] for n in re.findall(NAME, text)]

    def statement(self, line, regions):
        def match(pattern):
            return re.fullmatch(pattern, line)

        if match(r"module|pto\.section\.(cube|vector)"):
            self.run(regions[0][1])
        elif m := match(r"func\.func @\w+\((.*)\)"):
            for i, p in enumerate(m[1].split(", ")):
                name, dtype = re.fullmatch(rf"({NAME}): !pto\.ptr<(\w+)>", p).groups()
                self.values[name] = (i, 0, SIZES[dtype])
            self.run(regions[0][1])
        elif m := match(rf"scf\.for ({NAME}) = ({NAME}) to ({NAME}) step ({NAME})"):
            lo, hi, step = (self.values[m[i]] for i in (2, 3, 4))
            for i in range(lo, hi, step):
                self.values[m[1]] = i
                self.run(regions[0][1])
        elif m := match(rf"scf\.if ({NAME})"):
            taken = 0 if self.values[m[1]] else 1
            if taken < len(regions):
                self.run(regions[taken][1])
        elif m := match(rf"scf\.index_switch ({NAME})"):
            label = f"case {self.values[m[1]]}"
            cases = dict(regions)
            assert label in cases, f"{line}: no {label}: an event would be left out"
            self.run(cases[label])
        elif m := match(rf"({NAME}) = (.*)"):
            self.values[m[1]] = self.value(m[2])
        elif line not in ("return", "func.return", "scf.yield"):
            self.effect(line)

    def value(self, text):
        def match(pattern):
            return re.fullmatch(pattern, text)

        if m := match(r"arith\.constant (-?\d+) : (?:index|i64)"):
            return int(m[1])
        if m := match(rf"arith\.index_cast ({NAME}) : \w+ to \w+"):
            return self.values[m[1]]
        if m := match(rf"arith\.(addi|subi|muli|divsi|remsi|minsi|maxsi) ({NAME}), ({NAME}) : (?:index|i64)"):
            a, b = self.values[m[2]], self.values[m[3]]
            if m[1] in ("divsi", "remsi"):
                assert a >= 0 and b > 0, "division rounds toward 0: only numbers that are not negative mean the same everywhere"
            return {"addi": a + b, "subi": a - b, "muli": a * b, "minsi": min(a, b), "maxsi": max(a, b), "divsi": a // b if b else 0, "remsi": a % b if b else 0}[m[1]]
        if m := match(rf"arith\.cmpi (eq|ne|slt|sle), ({NAME}), ({NAME}) : (?:index|i64)"):
            a, b = self.values[m[2]], self.values[m[3]]
            return {"eq": a == b, "ne": a != b, "slt": a < b, "sle": a <= b}[m[1]]
        if text == "pto.get_block_idx":
            return self.block
        if text == "pto.get_block_num":
            return self.blocks
        if m := match(rf"pto\.addptr ({NAME}), ({NAME}) : !pto\.ptr<\w+> -> !pto\.ptr<\w+>"):
            buffer, at, size = self.values[m[1]]
            return buffer, at + self.values[m[2]], size
        if m := match(rf"pto\.make_tensor_view ({NAME}), shape = \[(.*)\], strides = \[(.*)\] : !pto\.tensor_view<\?x\?x\w+>"):
            return View(*self.values[m[1]], self.names(m[2]), self.names(m[3]))
        if m := match(rf"pto\.partition_view ({NAME}), offsets = \[(.*)\], sizes = \[(.*)\] : .* -> !pto\.partition_tensor_view<\?x\?x\w+>"):
            v, (down, right) = self.values[m[1]], self.names(m[2])
            return View(v.buffer, v.at + down * v.strides[0] + right, v.size, self.names(m[3]), v.strides)
        if m := match(rf"pto\.alloc_tile addr = ({NAME})(?: valid_row = ({NAME}))?(?: valid_col = ({NAME}))? : (.*)"):
            kind = TILE.fullmatch(m[4])
            assert kind, f"not a tile's type: {m[4]}"
            return Tile(kind, self.values[m[1]], *(self.values[n] if n else None for n in (m[2], m[3])))
        raise AssertionError(f"not known: {text}")

    def effect(self, line):
        if m := re.fullmatch(r'pto\.(set|wait)_flag\["PIPE_(\w+)", "PIPE_(\w+)", "EVENT_ID([0-7])"\]', line):
            self.steps.append(f"{m[1]} {m[2]} {m[3]} {m[4]}")
            return
        if m := re.fullmatch(r'pto\.pipe_barrier "PIPE_(\w+)"', line):
            self.steps.append(f"barrier {m[1]}")
            return
        m = re.fullmatch(rf"pto\.([\w.]+) ins\(((?:{NAME}(?: {{[^}}]*}})?(?:, )?)+) : (.*)\) outs\(({NAME}) : (.*)\)( {{.*}})?", line)
        assert m and m[1] in INSTRUCTIONS, f"not known: {line}"
        sources, to = self.names(m[2]), self.values[m[4]]
        types = TILE.finditer(m[3]) if m[1] != "tload" else []
        assert [t.group() for t in types] == [s.type for s in sources if isinstance(s, Tile)], "operand types disagree with the tiles"
        assert not isinstance(to, Tile) or m[5] == to.type
        if m[1] in ("trowmax", "trowsum"):
            sources = sources[:1]  # the other is scratch
        name = m[1].replace(".", "_").upper()
        self.steps.append(f"{name} {to.first()[1]} {to.bytes()} {min(s.first() for s in sources)[1]}")


def steps(text, block=0, blocks_in_all=1):
    given = re.findall(rf"^ *({NAME}) = |^ *scf\.for ({NAME}) =", text, re.M)
    names = [a or b for a, b in given]
    assert len(names) == len(set(names)), "a name is given twice"
    replay = Replay(block, blocks_in_all)
    replay.run(blocks(text.splitlines()))
    return replay.steps
