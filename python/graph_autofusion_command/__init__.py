"""Starts the `gaf` command that lies in the package's folder. A package of its own, so that starting imports nothing else."""

import importlib.util
import os
import sys


def main() -> None:
    package = importlib.util.find_spec("graph_autofusion")  # found, not imported
    assert package is not None and package.origin is not None
    command = os.path.join(os.path.dirname(package.origin), "gaf")
    os.execv(command, [sys.argv[0], *sys.argv[1:]])
