"""The names of dtypes: NumPy's own, so that `gt.float32 is np.float32`; promotion is NumPy's too.

`bfloat16` comes from ml_dtypes, which is loaded when the name is first used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    *("bool", "bool_", "float16", "float32", "float64", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
]

float16 = np.float16
float32 = np.float32
float64 = np.float64
complex64 = np.complex64
complex128 = np.complex128
int8 = np.int8
int16 = np.int16
int32 = np.int32
int64 = np.int64
uint8 = np.uint8
uint16 = np.uint16
uint32 = np.uint32
uint64 = np.uint64
bool_ = np.bool_
bool = np.bool_


def __getattr__(name: str) -> Any:
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
