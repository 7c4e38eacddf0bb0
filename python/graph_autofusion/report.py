"""The record of what was decided."""
from __future__ import annotations

import json
import os
from typing import Any

from .errors import ConfigError


class Report:
    """The same tree as the JSON document gaf.report/1: groups, not_fused, nodes, totals, settings, warnings. str() is text()."""

    def __init__(self, planned: Any, compiled: Any = None) -> None:
        self._planned, self._source = planned, compiled or planned
        self._tree: dict[str, Any] | None = None

    def _json(self) -> dict[str, Any]:
        if self._tree is None:
            self._tree = json.loads(self._source.report_json())
        return self._tree

    @property
    def groups(self) -> list:
        return self._json()["groups"]

    @property
    def not_fused(self) -> list:
        return self._json()["not_fused"]

    @property
    def nodes(self) -> dict:
        return self._json()["nodes"]

    @property
    def totals(self) -> dict:
        return self._json()["totals"]

    @property
    def settings(self) -> dict:
        return self._json()["settings"]

    @property
    def warnings(self) -> list[str]:
        return [w["text"] for w in self._json()["warnings"]]

    def why(self, a: str, b: str | None = None) -> str:
        """Of a node, or of the edge between two."""
        return self._planned.why(a, b or "")

    def text(self) -> str:
        return self._source.report_text()

    def json(self) -> str:
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
