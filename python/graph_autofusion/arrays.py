"""Arrays in and out: names and dtypes are checked here, memory is passed as it is."""
from __future__ import annotations

from typing import Any, Iterable

import numpy as np

from . import _gaf
from .errors import DTypeError, ShapeError, UsageError

try:  # numpy has no bfloat16 of its own
    from ml_dtypes import bfloat16 as _bfloat16
except ImportError:
    _bfloat16 = None

# What passes as it is. numpy makes each of these dtypes once, and asking for a dtype's name runs Python code, which costs more
# than a small kernel.
_PLAIN = {t: np.dtype(t) for t in ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
                                   "uint32", "uint64")}


def dtype_name(array: np.ndarray) -> str:
    """Our name of an array's dtype (bfloat16 where ml_dtypes made it)."""
    return "bool" if array.dtype == np.bool_ else array.dtype.name


def as_array(name: str, value: Any, dtype: str, what: str = "input") -> tuple[np.ndarray, bool]:
    """The value as a dense array of the model's dtype; whether it had to be copied. Python scalars are taken for 0-D inputs."""
    if type(value) is np.ndarray and value.dtype is _PLAIN.get(dtype) and value.flags.c_contiguous:
        return value, False
    if isinstance(value, (bool, int, float)):
        value = np.asarray(value, dtype=_bfloat16 if dtype == "bfloat16" and _bfloat16 else dtype)
    elif not isinstance(value, np.ndarray):
        value = np.asarray(value)
    if dtype_name(value) != dtype:
        if not (dtype == "bfloat16" and value.dtype == np.uint16):
            raise DTypeError(f"GAF3107: {what} '{name}': dtype {dtype_name(value)} given, {dtype} expected", code="GAF3107",
                             remedy=f"convert it: {name}.astype('{dtype}')")
    copied = not value.flags.c_contiguous
    if copied:
        value = np.ascontiguousarray(value)
    if dtype == "bfloat16":
        value = value.view(np.uint16)
    return value, copied


def from_native(pair: tuple[np.ndarray, str]) -> np.ndarray:
    """An array of the native module under the dtype it stands for."""
    array, dtype = pair
    return array.view(_bfloat16) if dtype == "bfloat16" and _bfloat16 is not None else array


def check_names(given: Iterable[str], wanted: list[str]) -> None:
    """Every input of the model is given, and nothing else."""
    given = list(given)
    for name in given:
        if name not in wanted:
            near = _gaf.nearest(name, wanted)
            raise UsageError(f"GAF3104: unknown input '{name}'" + (f" (did you mean '{near}'?)" if near else ""), code="GAF3104",
                             remedy=f"the model's inputs: {', '.join(wanted)}")
    missing = [name for name in wanted if name not in given]
    if missing:
        raise ShapeError(f"GAF3103: input '{missing[0]}' missing; model needs {', '.join(wanted)}", code="GAF3103")
