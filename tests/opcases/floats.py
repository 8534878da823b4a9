"""Samples of parts of numbers, neighbours and steps, and of functions of integers."""

from __future__ import annotations

import numpy as np

import gradtape as gt
from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arrays.floats import exponent, fraction, mantissa
from opcases.case import At, OpCase, Raises, draw, with_torch

X, Y = draw(2, 3), draw(2, 3, seed=1)
FLOATS = (np.float64, np.float32, np.float16)
WHOLE = np.array([[12, 10, 7], [0, 9, -6]])
OTHER = np.array([[1, 2, 0], [3, 1, 2]])
ODD = np.array([np.inf, -np.inf, np.nan, -0.0, 2.0])

PARTS = [
    OpCase(
        gt.divmod,
        (X, Y),
        np.divmod,
        ops=("floor_divide", "remainder"),
        elementwise=True,
        at=[At(([5.0, -5.0], [3.0, 3.0]), (np.ones(2), [-1.0, 2.0]))],
        raises=[Raises((draw(2), draw(3)), ShapeError, "divmod: got")],
    ),
    OpCase(
        gt.modf,
        (X,),
        np.modf,
        ops=("fraction", "trunc"),
        elementwise=True,
        dtypes=(*FLOATS, np.int8),
        at=[At((np.array([1.0, -2.0, 0.5]),), (np.ones(3),))],
        raises=[Raises((np.array([1j]),), DTypeError, "modf: got complex128")],
        torch=lambda torch, x: (torch.frac(x), torch.trunc(x)),
    ),
    OpCase(fraction, (ODD,), lambda x: np.modf(x)[0], differences=False, label="odd"),
    OpCase(
        gt.frexp,
        (X,),
        np.frexp,
        ops=("mantissa", "exponent"),
        elementwise=True,
        dtypes=FLOATS,
        at=[At(([3.0, 0.25, -8.0],), ([0.25, 2.0, 1 / 16],))],
        torch="frexp",
    ),
    OpCase(mantissa, (X,), lambda x: np.frexp(x)[0]),
    OpCase(exponent, (X,), lambda x: np.frexp(x)[1], differentiable=False),
    OpCase(
        gt.ldexp,
        (X, OTHER),
        np.ldexp,
        dtypes=FLOATS,
        at=[At(([1.5, 1.0], np.array([3, 1])), ([8.0, 2.0],))],
        torch="ldexp",
    ),
    OpCase(
        gt.ldexp,
        (X, -OTHER),
        np.ldexp,
        at=[At(([1.5], np.array([-1])), ([0.5],))],
        label="down",
    ),
]

STEPS = [
    OpCase(gt.nextafter, (X, Y), np.nextafter, elementwise=True, dtypes=FLOATS),
    OpCase(gt.spacing, (X,), np.spacing, elementwise=True, dtypes=FLOATS),
    OpCase(
        gt.heaviside,
        (X, Y),
        np.heaviside,
        elementwise=True,
        dtypes=FLOATS,
        at=[
            At(
                ([-1.0, 0.0, -0.0, 1.0, np.nan], [1.0, 2.0, 3.0, 4.0, 5.0]),
                (np.zeros(5), [0.0, 1.0, 1.0, 0.0, 0.0]),
                unlike_torch="0 at nan, where NumPy's is nan",
            ),
        ],
    ),
    OpCase(gt.heaviside, (ODD, np.full(5, 0.5)), np.heaviside, differences=False, label="odd"),
]

INTEGERS = [
    *(
        OpCase(getattr(gt, name), (WHOLE, OTHER), getattr(np, name), differentiable=False)
        for name in ("gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift")
    ),
    OpCase(gt.left_shift, (WHOLE, 2), np.left_shift, differentiable=False, label="number"),
    OpCase(gt.right_shift, (WHOLE, 1), np.right_shift, differentiable=False, label="number"),
    OpCase(
        gt.bitwise_count,
        (WHOLE,),
        np.bitwise_count,
        differentiable=False,
        raises=[Raises((X,), DTypeError, "bitwise_count: got float64")],
    ),
]

NAMES = ("gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift")
TORCH = {
    **{name: name for name in NAMES},
    "divmod": lambda torch, x, y: (torch.div(x, y, rounding_mode="floor"), torch.remainder(x, y)),
    "mantissa": lambda torch, x: torch.frexp(x).mantissa,
    "exponent": lambda torch, x: torch.frexp(x).exponent,
    "ldexp": "ldexp",
    "ldexp-down": lambda torch, x, n: torch.ldexp(x, n.double()),  # 2**n of integers is 0
    # Values only: PyTorch has no gradients of these.
    "nextafter": lambda torch, x, y: torch.nextafter(x.detach(), y.detach()),
    "heaviside": lambda torch, x, y: torch.heaviside(x.detach(), y.detach()),
    "heaviside-odd": None,  # 0 at nan
}

CASES: list[OpCase] = with_torch(TORCH, [*PARTS, *STEPS, *INTEGERS])

ULPS = {"fraction": 0, "heaviside": 0}

NOT_NATIVE = dict.fromkeys(
    ("mantissa", "exponent", "ldexp", "nextafter", "spacing"),
    "works on the bits of a number, which expressions do not reach",
) | dict.fromkeys(
    ("gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift", "bitwise_count"),
    "a function of integers that expressions have no instruction for",
)
