"""Samples of products and equations with Toeplitz and circulant matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, LinAlgError, ShapeError
from opcases.case import At, OpCase, Raises, draw

linalg = gt.linalg
DOUBLE = (np.float64, np.complex128)
REAL = (np.float64,)
B = draw(3, 2, seed=1)


def paired(name: str, **fixed: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function of gradtape's and of SciPy's that takes the first two arguments as a tuple."""

    def ours(c: Any, r: Any, x: Any) -> Any:
        return getattr(linalg, name)((c, r), x, **fixed)

    def reference(c: Any, r: Any, x: Any) -> Any:
        return getattr(scipy.linalg, name)((c, r), x)

    ours.__name__ = name
    return ours, reference


MATMUL, MATMUL_REFERENCE = paired("matmul_toeplitz")
SOLVE, SOLVE_REFERENCE = paired("solve_toeplitz")
C, R = np.array([4.0, 1.0, -0.5]), np.array([9.0, 0.7, 0.2])
CASES = [
    OpCase(
        MATMUL,
        (C, draw(2, seed=1), draw(2, 3, seed=2)),
        MATMUL_REFERENCE,
        ops=["rfft", "irfft"],
        rtol=64,
        dtypes=DOUBLE,
        raises=[Raises((C, R, draw(2)), ShapeError, "matmul_toeplitz.*vector of 3 elements")],
    ),
    OpCase(
        linalg.matmul_toeplitz,
        (C + 0.5j * R, draw(3)),
        scipy.linalg.matmul_toeplitz,
        ops=["fft"],
        rtol=64,
        dtypes=REAL,
        label="complex",
        raises=[Raises((np.array(1.0), C), ShapeError, "first column and the first row")],
    ),
    OpCase(
        SOLVE,
        (C, R, B),
        SOLVE_REFERENCE,
        rtol=256,
        dtypes=DOUBLE,
        raises=[
            Raises(
                (0 * C, 0 * R, B), LinAlgError, r"solve_toeplitz.*use solve\(toeplitz\(c, r\)\)"
            ),
            Raises((C, R[:2], B), ShapeError, "solve_toeplitz.*square"),
            Raises((C, R, draw(2)), ShapeError, "solve_toeplitz.*vector of 3"),
        ],
    ),
    OpCase(
        linalg.solve_toeplitz,
        (C + 0.2j * R * [0, 1, 1], draw(3) + 1j * draw(3, seed=3)),
        scipy.linalg.solve_toeplitz,
        rtol=256,
        label="complex",
    ),
    OpCase(
        SOLVE,
        (np.stack([C, 2 * C]), R, draw(2, 3, 1)),
        lambda c, r, b: np.stack(
            [scipy.linalg.solve_toeplitz((x, r), y) for x, y in zip(c, b, strict=True)]
        ),
        rtol=256,
        dtypes=REAL,
        label="batched",
    ),
    OpCase(
        SOLVE, (C[:0], R[:0], B[:0]), lambda c, r, b: b, ops=["copy"], dtypes=REAL, label="empty"
    ),
    OpCase(
        linalg.solve_circulant,
        (C, B),
        scipy.linalg.solve_circulant,
        ops=["fft", "verified"],
        rtol=256,
        dtypes=DOUBLE,
        raises=[
            Raises((np.ones(3), B), LinAlgError, "solve_circulant.*singular.*lstsq"),
            Raises((C, draw(2)), ShapeError, "solve_circulant.*expected as many"),
            Raises((C, B), AxisError, "solve_circulant: got axis 2", {"baxis": 2}),
            Raises((C, B), ArgumentError, "singular='x'", {"singular": "x"}),
        ],
    ),
    OpCase(
        linalg.solve_circulant,
        (np.stack([C, R]), draw(2, 1, 3)),
        scipy.linalg.solve_circulant,
        {"baxis": -1, "outaxis": -1},
        ["fft"],
        rtol=256,
        label="axes",
    ),
    # Along changes that keep what counts as 0, which differences do not.
    OpCase(
        linalg.solve_circulant,
        (np.array([1.0, 1.0, 0.0, 0.0]), draw(4)),
        scipy.linalg.solve_circulant,
        {"singular": "lstsq"},
        ["fft"],
        rtol=256,
        differences=False,
        second_order=False,
        label="singular",
        at=[At(([1.0, 1.0], [1.0, 3.0]), ([-1.0, -1.0], [0.5, 0.5]), {"singular": "lstsq"})],
    ),
]

NOT_NATIVE = {"solve_toeplitz": "SciPy does it"}
