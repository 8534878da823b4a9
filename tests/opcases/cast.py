"""Samples of dtype changes, complex parts, copies, and cutting history."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from opcases.case import OpCase, draw

X = draw(2, 3)
DTYPES = (np.float64, np.float32, np.complex128)


def _real_of_complex(x: Any, y: Any) -> Any:
    # The chain goes through complex numbers: |z|² − Im(z̄)·Re(z) of z = x + iy.
    z = x + 1j * y
    return gt.real(gt.conj(z) * z) - gt.imag(gt.conj(z)) * gt.real(z)


CASES = [
    OpCase(gt.astype, (X, np.float64), lambda x, dtype: x.astype(dtype)),
    OpCase(
        lambda x: gt.astype(x, np.int64),
        (X,),
        lambda x: x.astype(np.int64),
        ops=("astype",),
        label="astype-int",
        differentiable=False,
    ),
    OpCase(gt.copy, (X,), np.copy, dtypes=DTYPES),
    OpCase(gt.stop_gradient, (X,), lambda x: x, differentiable=False, dtypes=DTYPES),
    OpCase(gt.conj, (X,), np.conj, elementwise=True, dtypes=DTYPES),
    OpCase(gt.real, (X,), np.real, elementwise=True, dtypes=DTYPES),
    OpCase(gt.imag, (X,), np.imag, elementwise=True, dtypes=DTYPES),
    OpCase(
        _real_of_complex,
        (X, draw(2, 3, seed=1)),
        lambda x, y: x * x + y * y + x * y,
        ops=("real", "imag", "conj"),
        label="through-complex",
    ),
]
