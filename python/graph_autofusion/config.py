"""Settings of a compilation, and where each value comes from."""
from __future__ import annotations

import json
import warnings
from typing import Any, NamedTuple

from . import _gaf
from .errors import ConfigError

# field -> default as the documentation states it; only fields set explicitly reach the engine, so that a field left alone does
# not hide the environment or a settings file
_DEFAULTS: dict[str, Any] = {
    "enable_superkernel": True, "enable_autofuse": True, "max_fusion_depth": None, "cost_threshold": None, "strategy": "balanced",
    "level": 2, "target": "host", "extern_ops": [], "max_fusion_size": 64, "resource_budget": 0.8, "strict": False, "threads": 0,
    "cache_dir": None,
}
_LATER = ("cost_model", "rules", "groups", "switches", "measure", "measure_budget_s", "precision", "keep_dtype", "check_accuracy",
          "debug_dir", "compile_timeout_s", "max_variants")


class FusionConfig:
    """Keyword-only settings; a name that does not exist is a TypeError, a value that cannot be is a ConfigError.

    enable_superkernel: False plans and rewrites, but runs op by op without generated code.
    enable_autofuse: False turns automatic discovery off.
    max_fusion_depth: longest data path in a group, in ops; None = by strategy (4 / 16 / 64).
    cost_threshold: least gain of a group, a fraction of its unfused time; None = by strategy (0.10 / 0.01 / 0.0).
    strategy: conservative | balanced | aggressive.  level: 0 off, 1 basic, 2 all.
    target: host, a shipped name, or the path of a target file.
    extern_ops: op types or node names that no kernel touches.
    max_fusion_size: nodes per group.  resource_budget: share of registers and local memory that fusion may use, (0, 1].
    strict: no silent fallback.  threads: 0 = all that affinity and the container allow.
    cache_dir: None = the user's cache folder, "" = memory only.
    """

    enable_superkernel: bool
    enable_autofuse: bool
    max_fusion_depth: int | None
    cost_threshold: float | None
    strategy: str
    level: int
    target: str
    extern_ops: list[str]
    max_fusion_size: int
    resource_budget: float
    strict: bool
    threads: int
    cache_dir: str | None

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            if name in _LATER:
                raise ConfigError(f"GAF4009: setting '{name}' is not available in this version", code="GAF4009")
            if name not in _DEFAULTS:
                near = _gaf.nearest(name, list(_DEFAULTS))
                raise TypeError(f"FusionConfig has no setting '{name}'" + (f" (did you mean '{near}'?)" if near else ""))
        self._set = {k: v for k, v in fields.items()}
        try:
            _gaf.settings(self._layer())
        except Exception as e:
            if isinstance(e, ConfigError):
                raise
            raise ConfigError(str(e), code=getattr(e, "code", "GAF1102"), remedy=getattr(e, "remedy", "")) from e
        for text in _gaf.setting_warnings(self._layer()):
            warnings.warn(text, stacklevel=2)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in _DEFAULTS:
            raise AttributeError(name)
        return self._set.get(name, _DEFAULTS[name])

    def replace(self, **fields: Any) -> "FusionConfig":
        """The same settings with some changed."""
        return FusionConfig(**{**self._set, **fields})

    def to_dict(self) -> dict[str, Any]:
        """Every field and its value, defaults included."""
        return {name: self._set.get(name, default) for name, default in _DEFAULTS.items()}

    def _layer(self) -> dict[str, str]:
        """The explicit fields as the engine reads them."""
        layer = {}
        for name, value in self._set.items():
            if value is None:
                continue
            if isinstance(value, bool):
                layer[name] = "true" if value else "false"
            elif isinstance(value, (list, tuple)):
                layer[name] = ",".join(map(str, value))
            else:
                layer[name] = str(value)
        return layer

    def __repr__(self) -> str:
        return repr(self.to_dict())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FusionConfig) and self.to_dict() == other.to_dict()


class Setting(NamedTuple):
    """A value as text and its origin: config, env NAME, file or default."""

    value: str
    origin: str


def merged(config: FusionConfig | None, overrides: dict[str, Any]) -> FusionConfig:
    """The settings of a call: its config with the keyword arguments on top."""
    if config is not None and not isinstance(config, FusionConfig):
        raise TypeError(f"config is a FusionConfig, not {type(config).__name__}; settings may also be given as keyword arguments")
    base = config or FusionConfig()
    return base.replace(**overrides) if overrides else base


def settings(config: FusionConfig | None = None) -> dict[str, Setting]:
    """Every setting with its effective value and origin."""
    raw = json.loads(_gaf.settings((config or FusionConfig())._layer()))
    return {name: Setting(v["value"], v["origin"]) for name, v in raw.items()}
