"""Samples of comparisons, logic and bits."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import DTypeError, ShapeError
from opcases.case import OpCase, Raises, draw

X = np.array([[1.0, -2.0, 0.0], [np.inf, -0.0, 3.0]])
Y = np.array([[1.0, 2.0, 0.0], [-np.inf, 0.0, -3.0]])
ODD = np.array([1.0, np.nan, np.inf, -np.inf, -0.0])
WHOLE, OTHER = np.array([5, 6, 0]), np.array([3, 0, 1])
TRUTH, MIXED = np.array([True, False, True]), np.array([True, True, False])
DTYPES = (np.float64, np.float32, np.float16, np.complex128)
TORCH = {"equal": "eq", "not_equal": "ne", "bitwise_invert": "bitwise_not"}


def case(name: str, *args: Any, **kwargs: Any) -> OpCase:
    """A function that NumPy has under the same name, and PyTorch most often."""
    raises = []
    if len(args) > 1:
        raises = [Raises((draw(2), draw(3)), ShapeError, f"{name}: got")]
    if name.startswith("bitwise"):
        raises = [Raises((X, Y)[: len(args)], DTypeError, f"{name}: got float64")]
    return OpCase(
        getattr(gt, name),
        args,
        getattr(np, name),
        elementwise=True,
        differentiable=False,
        raises=raises,
        torch=TORCH.get(name, name),
        **kwargs,
    )


def infix(name: str, function: Callable[..., Any], *args: Any, label: str = "infix") -> OpCase:
    """Python's operator, which goes through the op of that name."""
    # PyTorch does not compare with lists.
    torch = None if label == "list" else lambda torch, *args: function(*args)
    return OpCase(
        function, args, function, ops=(name,), differentiable=False, label=label, torch=torch
    )


OPERATORS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
MIRRORED = {
    "less": operator.gt,
    "less_equal": operator.ge,
    "greater": operator.lt,
    "greater_equal": operator.le,
}
BITS = {"bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor}

CASES: list[OpCase] = [
    *(case(name, X, Y, dtypes=DTYPES) for name in OPERATORS),
    *(case(name, X, Y, dtypes=DTYPES) for name in ("logical_and", "logical_or", "logical_xor")),
    *(case(name, ODD, dtypes=DTYPES) for name in ("isnan", "isinf", "isfinite", "logical_not")),
    case("signbit", ODD, dtypes=DTYPES[:3]),
    case("isclose", X, Y + 1e-9, dtypes=DTYPES),
    case("isclose", ODD, ODD, params={"equal_nan": True}, label="nan"),
    case("isclose", X, Y, params={"rtol": 0, "atol": 4.0}, label="tolerance"),
    *(infix(name, op, X, Y) for name, op in OPERATORS.items()),
    *(infix(name, op, 0.0, X, label="number") for name, op in MIRRORED.items()),
    *(infix(name, op, X, [1.0, 2.0, 0.0], label="list") for name, op in OPERATORS.items()),
    *(case(name, WHOLE, OTHER) for name in BITS),
    *(case(name, TRUTH, MIXED, label="bool") for name in BITS),
    *(infix(name, op, TRUTH, MIXED) for name, op in BITS.items()),
    *(infix(name, op, TRUTH, True, label="constant") for name, op in BITS.items()),
    *(infix(name, op, True, TRUTH, label="reflected") for name, op in BITS.items()),
    *(infix(name, op, 3, WHOLE, label="reflected-number") for name, op in BITS.items()),
    case("bitwise_invert", WHOLE),
    infix("bitwise_invert", operator.invert, TRUTH),
]

ULPS = {"signbit": 0}
