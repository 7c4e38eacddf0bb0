"""The record of what was decided."""
from __future__ import annotations

import json
import os
from typing import Any

from . import _gaf
from .errors import ConfigError


class Report:
    """The same tree as the JSON document gaf.report/1: groups, not_fused, nodes, totals, settings, warnings. str() is text()."""

    def __init__(self, planned: "_gaf.Planned", compiled: "_gaf.Compiled | None" = None) -> None:
        self._planned, self._source = planned, compiled or planned
        self._tree: dict[str, Any] | None = None

    def _part(self, key: str) -> Any:
        if self._tree is None:
            self._tree = json.loads(self._source.report_json())
        return self._tree[key]

    @property
    def groups(self) -> list[dict[str, Any]]:
        """Ops that share a kernel: id, kernel, nodes, original_nodes, why, gain, predicted_us, bytes, resources ..."""
        groups: list[dict[str, Any]] = self._part("groups")
        return groups

    @property
    def not_fused(self) -> list[dict[str, Any]]:
        """Edges between ops that are not inside a group: from, to, reason, text, numbers, could_save_us; `edges` are those of the model
        that a line stands for, each in one line."""
        edges: list[dict[str, Any]] = self._part("not_fused")
        return edges

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        """What became of each node of the model, by name: op, fate, group, reason, part_of, predicted_us, bytes."""
        nodes: dict[str, dict[str, Any]] = self._part("nodes")
        return nodes

    @property
    def totals(self) -> dict[str, Any]:
        """Ops, kernels, bytes and predicted microseconds before and after; what compiling cost."""
        totals: dict[str, Any] = self._part("totals")
        return totals

    @property
    def settings(self) -> dict[str, dict[str, str]]:
        """Every setting: value and origin."""
        settings: dict[str, dict[str, str]] = self._part("settings")
        return settings

    @property
    def warnings(self) -> list[str]:
        """What a user should know: hints that were guessed, settings that have no effect."""
        return [w["text"] for w in self._part("warnings")]

    def why(self, a: str, b: str | None = None) -> str:
        """Why a node, or the edge between two nodes, was fused or not. An unknown name is a ModelError."""
        return self._planned.why(a, b or "")

    def text(self) -> str:
        """The report as people read it."""
        return self._source.report_text()

    def json(self) -> str:
        """The document gaf.report/1."""
        return self._source.report_json()

    def save(self, path: str) -> None:
        """By suffix: .txt or .json."""
        path = os.fspath(path)
        if path.endswith(".json"):
            content = self.json() + "\n"
        elif path.endswith(".txt"):
            content = self.text()
        else:
            raise ConfigError(f"GAF1102: cannot write a report as '{path}'", code="GAF1102", remedy="use .txt or .json")
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w", encoding="utf-8") as f:
                f.write(content)
            os.replace(temporary, path)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from html import escape
        return f"<pre>{escape(self.text())}</pre>"
