"""Exceptions. Every one is a GafError with the fields of the catalogue row it comes from."""
from __future__ import annotations

from typing import Any


class GafError(Exception):
    """code, node, op_type, file, line, column, cause, remedy; details: all faults found together, as dicts."""

    code: str
    node: str
    op_type: str
    file: str
    line: int
    column: int
    cause: str
    remedy: str
    details: list[dict[str, Any]]

    def __init__(self, message: str, **fields: Any) -> None:
        remedy = fields.get("remedy", "")
        super().__init__(f"{message}\n    remedy: {remedy}" if remedy and remedy not in message else message)
        self.code = fields.get("code", "")
        self.node = fields.get("node", "")
        self.op_type = fields.get("op_type", "")
        self.file = fields.get("file", "")
        self.line = fields.get("line", 0)
        self.column = fields.get("column", 0)
        self.cause = fields.get("cause", "")
        self.remedy = fields.get("remedy", "")
        self.details = fields.get("details", [])


class UsageError(GafError, ValueError):
    """A call that cannot be meant: unknown option, file suffix, name."""


class ConfigError(GafError, ValueError):
    """A setting with a value it cannot have."""


class RuleError(GafError):
    """A fusion rule that is wrong, or raised."""


class CostModelError(GafError):
    """A cost model that is wrong, or raised."""


class TargetError(GafError):
    """A target file that is wrong, or a target this machine does not run."""


class ModelError(GafError):
    """A model that is damaged or contradicts itself."""


class ShapeError(GafError, ValueError):
    """An input or a node whose shape does not fit."""


class DTypeError(GafError, TypeError):
    """An input of another dtype than the model's; there are no silent casts."""


class UnsupportedError(GafError, NotImplementedError):
    """An operator or feature without an implementation here."""


class CompileError(GafError):
    """Code generation failed."""


class CompileTimeout(CompileError, TimeoutError):
    """Code generation took longer than allowed."""


class ExecutionError(GafError, RuntimeError):
    """A run failed: memory, an index out of range, the CPU lacks what the code needs."""


class AccuracyError(GafError):
    """Results differ from the reference by more than the tolerance."""


class CacheError(GafError):
    """The kernel cache cannot be used."""


class InternalError(GafError):
    """A fault of ours; please report it."""


def make(records: list[dict[str, Any]]) -> GafError:
    """The exception for faults found together (called by the native module); its class is that of the first."""
    first = records[0]
    kind: type[GafError] = globals().get(first["type"], GafError)
    lines = []
    for r in records:
        place = f":{r['line']}:{r['column']}" if r["line"] else ""
        where = f"{r['file']}{place}: " if r["file"] else ""
        node = f"node '{r['node']}'" + (f" ({r['op_type']})" if r["op_type"] else "") + ": " if r["node"] else ""
        remedy = f"\n    remedy: {r['remedy']}" if r["remedy"] else ""
        lines.append(f"{where}{r['code']}: {node}{r['message']}{remedy}")
    fields = {k: v for k, v in first.items() if k not in ("message", "type")}
    return kind("\n".join(lines), details=records, **fields)
