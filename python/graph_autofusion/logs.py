"""Log records through Python's logging."""
from __future__ import annotations

import logging

from . import _gaf

_LEVELS = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR]


def use_python_logging(on: bool = True) -> None:
    """Sends the engine's log lines to the logger "graph_autofusion" instead of stderr."""
    logger = logging.getLogger("graph_autofusion")
    _gaf.set_log_sink((lambda level, line: logger.log(_LEVELS[min(level, 3)], "%s", line)) if on else None)
