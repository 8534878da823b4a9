"""Samples of exponentials, logarithms and roots."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ShapeError
from opcases.case import At, OpCase, Raises, draw

inf, nan = np.inf, np.nan
X, Y = draw(2, 3), draw(2, 3, seed=1)
POSITIVE = draw(2, 3, low=0.2)
REAL = (np.float64, np.float32, np.float16)
ALL = (*REAL, np.int8, np.complex64, np.complex128)
DOUBLE = (*REAL, np.complex128)


def case(name: str, *args: Any, **kwargs: Any) -> OpCase:
    """A function that NumPy and PyTorch have under the same name."""
    bad = [Raises((draw(2), draw(3)), ShapeError, f"{name}: got")] if len(args) > 1 else []
    return OpCase(
        getattr(gt, name),
        args,
        getattr(np, name),
        elementwise=True,
        raises=bad,
        torch=kwargs.pop("torch", name),
        **kwargs,
    )


def infinities(big: Any) -> list[At]:
    """Where log(eˣ + eʸ) goes with its larger argument, and shares a tie."""
    return [
        At((0.0, 0.0), (0.5, 0.5)),
        At((big, 0.0), (1.0, 0.0)),
        At((-inf, 1.0), (0.0, 1.0)),
        At((1.0, inf), (0.0, 1.0)),
        At((inf, -inf), (1.0, 0.0)),
        At((inf, inf), (0.5, 0.5), unlike_torch="nan from inf − inf; a tie is shared"),
        At((-inf, -inf), (0.0, 0.0), unlike_torch="nan from inf − inf; nothing is added up"),
        At((nan, 1.0), (nan, nan)),
    ]


CASES: list[OpCase] = [
    case("exp", X, dtypes=ALL, at=[At((-inf,), (0.0,)), At((inf,), (inf,))]),
    case("exp2", X, dtypes=(*DOUBLE, np.int8)),
    OpCase(
        gt.exp10,
        (X,),
        lambda x: np.power(10.0, x),
        elementwise=True,
        dtypes=(*REAL, np.int8),
        torch=lambda torch, x: torch.pow(10.0, x),
    ),
    case("expm1", X, dtypes=ALL, at=[At((0.0,), (1.0,)), At((-inf,), (0.0,))]),
    case("log", POSITIVE, dtypes=DOUBLE, at=[At((0.0,), (inf,)), At((inf,), (0.0,))]),
    case("log2", POSITIVE, dtypes=DOUBLE),
    case("log10", POSITIVE, dtypes=DOUBLE),
    case("log1p", POSITIVE - 1, dtypes=DOUBLE, at=[At((-1.0,), (inf,)), At((0.0,), (1.0,))]),
    case("sqrt", POSITIVE, dtypes=DOUBLE, at=[At((0.0,), (inf,)), At((inf,), (0.0,))]),
    case("cbrt", X, torch=None, dtypes=REAL, at=[At((0.0,), (inf,)), At((-8.0,), (1 / 12,))]),
    case("logaddexp", X, Y, dtypes=REAL, at=infinities(1000.0)),
    case("logaddexp2", X, Y, dtypes=REAL, at=infinities(2000.0)),
]

ULPS = {"logaddexp": 4, "logaddexp2": 4, "exp10": 4}
