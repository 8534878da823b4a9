"""Samples of the operators, remainders, powers and absolute values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ShapeError
from opcases.case import At, OpCase, Raises, draw

inf, nan = np.inf, np.nan
X, Y = draw(2, 3), draw(2, 3, low=0.5, seed=1)
REAL = (np.float64, np.float32, np.float16, np.int8)
ALL = (*REAL, np.complex64, np.complex128)

BAD_SHAPES = (draw(2, 3), draw(2, 4))


def binary(name: str, *args: Any, **kwargs: Any) -> OpCase:
    """A function of two arrays, refusing shapes that do not go together."""
    bad = Raises(BAD_SHAPES, ShapeError, rf"{name}: got float64\[2, 3\], float64\[2, 4\]")
    return unary(name, *args, raises=[bad], **kwargs)


def unary(name: str, *args: Any, **kwargs: Any) -> OpCase:
    """A function by its name, which NumPy and PyTorch have too."""
    torch = kwargs.pop("torch", name)
    return OpCase(
        getattr(gt, name), args, getattr(np, name), elementwise=True, torch=torch, **kwargs
    )


def infix(
    name: str, function: Callable[..., Any], *args: Any, label: str = "infix", **kwargs: Any
) -> OpCase:
    """Python's operator, which goes through the op of that name."""
    return OpCase(
        function,
        args,
        function,
        ops=(name,),
        label=label,
        torch=kwargs.pop("torch", lambda torch, *args: function(*args)),
        **kwargs,
    )


def floored(torch: Any, x: Any, y: Any) -> Any:
    """PyTorch's `floor_divide` has no gradient."""
    return torch.div(x, y, rounding_mode="floor")


BASICS = [
    binary("add", X, Y, dtypes=ALL),
    binary("subtract", X, Y, dtypes=ALL),
    binary("multiply", X, Y, dtypes=ALL),
    binary("divide", X, Y, dtypes=(np.float64, np.float32, np.complex128)),
    unary("negative", X, dtypes=ALL),
    unary("positive", X, dtypes=ALL),
    unary(
        "square",
        X,
        dtypes=ALL,
        at=[At((0.0,), (0.0,)), At((-inf,), (-inf,))],
    ),
    unary(
        "reciprocal",
        Y,
        dtypes=(np.float64, np.float32, np.complex128),
        at=[At((inf,), (0.0,)), At((0.0,), (-inf,))],
    ),
    infix("add", operator.add, X, Y),
    infix("subtract", operator.sub, 2.0, Y),
    infix("multiply", operator.mul, 2, Y),
    infix("divide", operator.truediv, 2, Y),
    infix("remainder", operator.mod, X, 0.7),
    infix("floor_divide", operator.floordiv, X, 0.7, torch=floored),
    infix("negative", operator.neg, X),
    infix("positive", operator.pos, X),
    infix("abs", operator.abs, X),
]

REMAINDERS = [
    binary("floor_divide", X, Y, dtypes=REAL[:2], torch=floored),
    binary("remainder", X, Y, dtypes=REAL[:2], at=[At((5.0, 3.0), (1.0, -1.0))]),
    binary("remainder", X, -Y, label="negative"),
    binary(
        "fmod",
        X,
        Y,
        at=[
            At((-5.0, 3.0), (1.0, 1.0)),
            At((1.0, 0.1), (1.0, -9.0), unlike_torch="-10, the quotient rounded before it is cut"),
            At((1.0, inf), (1.0, 0.0)),
        ],
    ),
]

P = draw(2, 3, low=0.5)  # a base of which every power exists
POWERS = [
    binary("power", P, X, dtypes=(np.float64, np.float32, np.complex128), rtol=32, torch="pow"),
    OpCase(gt.power, (2, 3.0), operator.pow, label="numbers", differentiable=False),
    OpCase(gt.power, ([2, 3], 2), lambda x, y: np.power(x, y), label="list", differentiable=False),
    OpCase(gt.power, (draw(3), np.array([2, 3, -1])), np.power, label="integers", torch="pow"),
    OpCase(gt.power, (P, np.float64(1.5)), np.power, label="numpy-number", dtypes=[np.float64]),
    OpCase(gt.power, (P, 1.5 + 0.5j), np.power, label="complex-number", torch="pow"),
    *(
        infix("power", lambda x, n=n: x**n, X, label=f"x**{n}", rtol=64)
        for n in (0, 1, 2, 2.0, 4, 5, -1, -2, -3)
    ),
    *(infix("power", lambda x, n=n: x**n, P, label=f"x**{n}") for n in (0.5, -0.5, 2.5)),
    *(OpCase(gt.power, (X, n), np.power, label=f"{n}", rtol=64, torch="pow") for n in (2, 3, 3.0)),
    infix(
        "power",
        lambda x: x**inf,
        P + 1,
        label="x**inf",
        differences=False,
        second_order=False,
        at=[At((2.0,), (inf,)), At((0.5,), (nan,))],
    ),
    infix("power", lambda x: 2**x, X, label="2**x"),
    infix("power", lambda x: 0.5**x, X, label="0.5**x"),
]


def grad_of_power(n: Any) -> Callable[[Any], Any]:
    """The first derivative of x**n, to see the second one at special points."""
    return gt.grad(lambda x: gt.sum(x**n))


def derivative(n: Any) -> Callable[[Any], Any]:
    return lambda x: n * x ** (n - 1)


POWERS_AT = [
    OpCase(
        gt.power,
        (P, X),
        np.power,
        label="at",
        torch="pow",
        at=[
            At((0.0, 0.0), (0.0, 0.0)),
            At((0.0, 1.0), (1.0, 0.0)),
            At((0.0, 2.0), (0.0, 0.0)),
            At((0.0, 0.5), (inf, 0.0)),
            At((0.0, -1.0), (-inf, -inf)),
            At((-2.0, 3.0), (12.0, nan)),
            At((inf, 0.0), (0.0, inf)),
            At((-2.0, np.array(3)), (12.0,)),
            At((-2.0, 3), (12.0,)),
            At((np.array([0.0, 2.0]), 0), (np.zeros(2),)),
            At((np.array([0.0, 2.0]), np.array([0, 1])), (np.array([0.0, 1.0]),)),
            At((0, np.array([0.0, 2.0, -1.0])), (np.array([0.0, 0.0, -inf]),)),
            At((-2, np.array([2.0])), (np.array([nan]),)),
        ],
    ),
    *(
        OpCase(
            grad_of_power(n),
            (P,),
            derivative(n),
            ops=("power",),
            label=f"second-order-{n}",
            at=[At((0.0,), (second,)), At((np.array([0.0, 0.0]),), (np.array([second, second]),))],
        )
        for n, second in ((1, 0.0), (2, 2.0), (3, 0.0), (2.5, 0.0))
    ),
    *(
        OpCase(
            grad_of_power(np.array(float(n))),
            (X,),
            derivative(n),
            ops=("power",),
            label=f"second-order-array-{n}",
            dtypes=[np.float64],
            at=[At((0.0,), (second,))],
        )
        for n, second in ((0, 0.0), (1, 0.0), (2, 2.0), (3, 0.0))
    ),
]


def turned(x: Any, y: Any) -> Any:
    """Functions of complex numbers seen as functions of two real ones."""
    return gt.abs(x + 1j * y)


def turned_sign(x: Any, y: Any) -> Any:
    s = gt.sign(x + 1j * y)
    return gt.real(s) - 2.0 * gt.imag(s)


def turned_sign_ref(x: Any, y: Any) -> Any:
    s = np.sign(x + 1j * y)
    return np.real(s) - 2.0 * np.imag(s)


def torch_turned_sign(torch: Any, x: Any, y: Any) -> Any:
    s = torch.sgn(torch.complex(x, y))
    return torch.real(s) - 2.0 * torch.imag(s)


LENGTHS = [
    OpCase(
        gt.abs,
        (X,),
        np.absolute,
        elementwise=True,
        torch="abs",
        dtypes=ALL,
        at=[At((0.0,), (0.0,)), At((-inf,), (-1.0,)), At((-0.0,), (0.0,))],
    ),
    OpCase(
        turned,
        (X, Y),
        lambda x, y: np.abs(x + 1j * y),
        ops=("abs",),
        at=[At((0.0, 0.0), (0, 0))],
        torch=lambda torch, x, y: torch.abs(x + 1j * y),
    ),
    unary("sign", X, dtypes=ALL, at=[At((0.0,), (0.0,))], torch="sgn"),
    OpCase(
        turned_sign,
        (X, Y),
        turned_sign_ref,
        ops=("sign",),
        at=[At((0.0, 0.0), (0.0, 0.0))],
        rtol=64,
        torch=torch_turned_sign,
    ),
    binary(
        "hypot",
        X,
        Y,
        at=[
            At((0.0, 0.0), (0.0, 0.0), unlike_torch="nan from 0/0; the middle of all slopes is 0"),
            At((3.0, 4.0), (0.6, 0.8)),
            At((1e200, 0.0), (1.0, 0.0)),
        ],
    ),
]

CASES: list[OpCase] = [*BASICS, *REMAINDERS, *POWERS, *POWERS_AT, *LENGTHS]

ULPS = {"power": 4}
