"""Samples of arrays put together and taken apart, chosen from, interpolated, and of polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, DTypeError, IndexingError, ShapeError
from opcases.case import At, OpCase, Raises, draw, with_torch

V, M, T = draw(4), draw(3, 4), draw(2, 3, 4)
Z = draw(3) + 1j * draw(3, seed=1)
ALL = (np.float64, np.float32, np.float16, np.int8, np.complex128)

JOINED = [
    OpCase(gt.append, (M, V), np.append, ops=("concatenate",), dtypes=ALL),
    OpCase(
        gt.append,
        (M, draw(2, 4)),
        np.append,
        {"axis": 0},
        ops=("concatenate",),
        label="axis",
        raises=[Raises((M, V), ShapeError, "append: got", {"axis": 0})],
    ),
    OpCase(
        gt.block,
        ([[draw(2, 2), draw(2, 1)], [draw(1, 3)]],),
        np.block,
        ops=("concatenate",),
        raises=[Raises(([[V], V],), ShapeError, "block: got lists of depths")],
        torch=lambda torch, blocks: torch.cat([torch.cat(row, 1) for row in blocks], 0),
    ),
    OpCase(gt.block, ([V, 2.0, draw(2)],), np.block, ops=("concatenate",), label="row"),
    OpCase(
        gt.delete,
        (M, 1),
        np.delete,
        {"axis": 1},
        ops=("gather",),
        raises=[Raises((V, 9), IndexingError, "delete: index 9 is out of bounds")],
    ),
    OpCase(gt.delete, (M, [0, 5, -1]), np.delete, ops=("gather",), label="flat"),
    OpCase(gt.delete, (M, slice(0, 2)), np.delete, {"axis": 0}, ops=("gather",), label="slice"),
    OpCase(
        gt.insert, (M, 1, np.array(5.0)), np.insert, {"axis": 1}, ops=("gather",), label="number"
    ),
    OpCase(gt.insert, (M, 1, draw(3)), np.insert, {"axis": 1}, ops=("gather",), label="column"),
    OpCase(gt.insert, (M, 2, V), np.insert, {"axis": 0}, ops=("gather",), label="row"),
    OpCase(gt.insert, (V, [1, 1, 3], draw(3)), np.insert, ops=("gather",), label="several"),
    OpCase(gt.insert, (V, [2], draw(1)), np.insert, ops=("gather",), label="one-of-list"),
    OpCase(gt.insert, (V, slice(1, 3), np.array(0.5)), np.insert, ops=("gather",), label="slice"),
    OpCase(gt.insert, (M, 0, draw(2)), np.insert, ops=("gather",), label="flat"),
    OpCase(gt.resize, (M, (2, 7)), np.resize, ops=("gather",), dtypes=ALL),
    OpCase(gt.resize, (V, 3), np.resize, ops=("gather",), label="shorter"),
]

APART = [
    OpCase(
        gt.unstack,
        (T,),
        lambda x, axis: tuple(np.moveaxis(x, axis, 0)),
        {"axis": 1},
        ops=("getitem",),
        torch=lambda torch, x, axis: torch.unbind(x, axis),
        raises=[Raises((V,), AxisError, "unstack: got axis 1", {"axis": 1})],
    ),
    OpCase(gt.hsplit, (M, 2), np.hsplit, ops=("split",), torch="hsplit"),
    OpCase(gt.hsplit, (V, [1, 3]), np.hsplit, ops=("split",), torch="hsplit", label="vector"),
    OpCase(
        gt.vsplit,
        (M, [1]),
        np.vsplit,
        ops=("split",),
        torch="vsplit",
        raises=[Raises((V, 2), ShapeError, "vsplit: got shape")],
    ),
    OpCase(gt.dsplit, (T, 2), np.dsplit, ops=("split",), torch="dsplit"),
    OpCase(
        gt.diagflat,
        (draw(2, 2), 1),
        np.diagflat,
        ops=("diagonal_embed",),
        torch=lambda torch, x, k: torch.diagflat(x, k),
    ),
    OpCase(gt.rollaxis, (T, 2), np.rollaxis, ops=("transpose",)),
    OpCase(gt.rollaxis, (T, 0, 3), np.rollaxis, ops=("transpose",), label="last"),
]

CHOICES = [
    OpCase(
        gt.select,
        ([V > 0.5, V < 0], [V, V * V], 0.25),
        np.select,
        ops=("where",),
        dtypes=ALL[:3],
        raises=[
            Raises(([V > 0], [V, V]), ArgumentError, "select: got 1 conditions and 2"),
            Raises(([V], [V]), ArgumentError, "select: got a condition"),
        ],
    ),
    OpCase(
        gt.select,
        ([V > 0.5, V < 0], [M, np.array(2.0)], draw(1)),
        np.select,
        ops=("where",),
        label="arrays",
    ),
    OpCase(
        gt.choose,
        (np.array([1, 0, 1, 1]), [V, V * V]),
        np.choose,
        ops=("gather",),
        fixed=(0,),
        raises=[
            Raises((np.array([2]), [V, V]), IndexingError, "choose: got a number outside"),
            Raises((np.array([0]), [V]), ArgumentError, "choose: got mode", {"mode": "no"}),
        ],
    ),
    OpCase(
        gt.choose,
        (np.array([5, -1, 1, 0]), [V, V * V, np.array(1.0)]),
        np.choose,
        {"mode": "wrap"},
        ops=("gather",),
        label="wrap",
    ),
    OpCase(
        gt.choose,
        (np.array([5, -1, 1, 0]), [V, V * V]),
        np.choose,
        {"mode": "clip"},
        ops=("gather",),
        label="clip",
    ),
    OpCase(
        gt.compress,
        ([True, False, True], M),
        np.compress,
        {"axis": 0},
        ops=("gather",),
        raises=[Raises((M > 0, M), ShapeError, "compress: got a condition")],
    ),
    OpCase(gt.extract, ([[True, False], [False, True]], draw(2, 2)), np.extract, ops=("gather",)),
]


def pieces(module: Any) -> Any:
    """A function in three pieces; its conditions depend on the values."""

    def function(x: Any) -> Any:
        halves = [x < 0, x > 1]
        return module.piecewise(x, halves, [lambda x: x * x, lambda x: 3 * x, 0.5])

    return function


PIECEWISE = [
    OpCase(
        pieces(gt),
        (np.array([-1.0, 0.5, 2.0]),),
        pieces(np),
        ops=("multiply",),
        label="piecewise",
    ),
    OpCase(
        gt.piecewise,
        (V, V > 0, [1.5]),
        np.piecewise,
        ops=("where",),
        differentiable=False,
        label="one",
        raises=[Raises((V, [V > 0], [1, 2, 3]), ArgumentError, "piecewise: got 1 conditions")],
    ),
]

GRID = np.array([0.0, 1.0, 2.5, 3.0])
PLACES = np.array([-1.0, 0.25, 1.75, 2.75, 4.0])
INTERPOLATION = [
    OpCase(
        gt.interp,
        (PLACES, GRID, V),
        np.interp,
        ops=("where", "gather"),
        at=[
            At(
                ([0.0, 1.0, 3.0, 5.0], [0.0, 1.0, 3.0], [0.0, 1.0, 5.0]),
                ([1.0, 2.0, 2.0, 0.0], [-1.0, -2.0, -2.0], [1.0, 1.0, 2.0]),
            ),
            At(
                ([-np.inf, 2.0, np.inf], [0.0, 1.0, 3.0], [0.0, 1.0, 5.0]),
                ([0.0, 2.0, 0.0], [0.0, -1.0, -1.0], [1.0, 0.5, 1.5]),
            ),
        ],
        raises=[
            Raises((PLACES, GRID, draw(3)), ShapeError, "interp: got xp"),
            Raises((PLACES + 1j, GRID, V), DTypeError, "interp: got complex128"),
        ],
    ),
    OpCase(
        gt.interp,
        (PLACES, GRID, V, np.array(0.5), np.array(2.0)),
        np.interp,
        ops=("where",),
        label="ends",
    ),
    OpCase(
        gt.interp,
        (PLACES + 0.1, np.array([0.5, 3.3, 1.0, 2.5]), V),
        np.interp,
        {"period": 3.0},
        ops=("where",),
        label="period",
    ),
    OpCase(gt.interp, (PLACES, draw(1), draw(1)), np.interp, ops=("where",), label="one-sample"),
    OpCase(gt.interp, (PLACES, GRID, V + 2j * V), np.interp, ops=("where",), label="complex"),
]

P, Q = draw(4), draw(3, seed=1)
POLYNOMIALS = [
    OpCase(
        gt.polyval,
        (P, M),
        np.polyval,
        ops=("multiply",),
        dtypes=ALL[:4],
        raises=[Raises((M, V), ShapeError, "polyval: got coefficients")],
    ),
    OpCase(gt.vander, (V,), np.vander, ops=("cumprod",), dtypes=ALL),
    OpCase(
        gt.vander,
        (np.array([0.0, 1.0, 2.0]), 3, True),
        np.vander,
        ops=("cumprod",),
        label="rising",
        raises=[Raises((M,), ShapeError, "vander: got shape")],
        torch=lambda torch, x, n, increasing: torch.linalg.vander(x, N=n),
    ),
    OpCase(gt.polyadd, (P, Q), np.polyadd, ops=("add",)),
    OpCase(gt.polysub, (Q, P), np.polysub, ops=("subtract",)),
    OpCase(gt.polymul, (P, Q), np.polymul, ops=("convolve_part",)),
    OpCase(
        gt.polyder,
        (P, 2),
        np.polyder,
        ops=("multiply",),
        raises=[Raises((P, -1), ArgumentError, "polyder: got m=-1")],
    ),
    OpCase(
        gt.polyint,
        (P, 2, draw(2)),
        np.polyint,
        ops=("divide",),
        raises=[Raises((P, -1), ArgumentError, "polyint: got m=-1")],
    ),
    OpCase(gt.poly, (V,), np.poly, ops=("convolve_part",)),
    OpCase(gt.polyfit, (V, draw(4, seed=1), 2), np.polyfit, ops=("lstsq",), rtol=4096),
    OpCase(
        gt.polyfit,
        (V, draw(4, 2), 1),
        np.polyfit,
        {"w": np.array([1.0, 2.0, 0.5, 1.0])},
        ops=("lstsq",),
        rtol=4096,
        label="weights",
    ),
    OpCase(
        gt.polyfit,
        (V, draw(4, seed=1), 1),
        np.polyfit,
        {"cov": True},
        ops=("lstsq",),
        rtol=4096,
        label="cov",
    ),
    OpCase(
        lambda x, y: gt.polyfit(x, y, 1, full=True)[:2],
        (V, draw(4, seed=1)),
        lambda x, y: np.polyfit(x, y, 1, full=True)[:2],
        ops=("lstsq",),
        rtol=4096,
        label="polyfit-full",
    ),
]

OTHERS = [
    OpCase(
        gt.angle,
        (Z,),
        np.angle,
        ops=("arctan2",),
        torch="angle",
    ),
    OpCase(gt.angle, (Z, True), np.angle, ops=("arctan2",), label="degrees"),
    OpCase(gt.angle, (V,), np.angle, ops=("arctan2",), dtypes=ALL[:4], label="real", torch="angle"),
    *(
        OpCase(
            getattr(gt, name), (x,), getattr(np, name), ops=(op,), differentiable=False, label=label
        )
        for name, op in (("iscomplex", "imag"), ("isreal", "imag"))
        for label, x in (("complex", Z * [1, 0, 0]), ("floats", V))
    ),
    *(
        OpCase(
            getattr(gt, name),
            (np.array([np.inf, -np.inf, np.nan, 1.0]),),
            getattr(np, name),
            ops=("equal",),
            differentiable=False,
        )
        for name in ("isneginf", "isposinf")
    ),
    OpCase(
        gt.i0,
        (V,),
        np.i0,
        ops=("i0",),
        rtol=64,
        raises=[Raises((Z,), DTypeError, "i0: got complex")],
        label="numpy",
        torch="special.i0",
    ),
    OpCase(gt.apply_along_axis, (lambda v: v * v[0], 1, M), np.apply_along_axis, ops=("stack",)),
    OpCase(
        gt.apply_along_axis,
        (lambda v: v[:2, None] * v[:2], 0, draw(2, 2, 1)),
        np.apply_along_axis,
        ops=("stack",),
        label="matrices",
        raises=[Raises((lambda v: v, 3, M), AxisError, "apply_along_axis: got axis 3")],
    ),
    OpCase(
        gt.apply_over_axes,
        (lambda x, a: (x * x).sum(a), T, (0, 2)),
        np.apply_over_axes,
        ops=("sum",),
    ),
    OpCase(
        gt.ravel_multi_index,
        ((np.array([0, 1, 2]), np.array([3, 0, 1])), (3, 4)),
        np.ravel_multi_index,
        differentiable=False,
        raises=[
            Raises(((np.array([9]), np.array([0])), (3, 4)), ArgumentError, "ravel_multi_index: ")
        ],
    ),
    OpCase(
        gt.unravel_index,
        (np.array([5, 0, 11]), (3, 4)),
        np.unravel_index,
        differentiable=False,
        torch="unravel_index",
        raises=[Raises((np.array([12]), (3, 4)), ArgumentError, "unravel_index: index 12 is out")],
    ),
]

TORCH = {
    **{name: name for name in ("isneginf", "isposinf", "isreal")},
    "vander": lambda torch, x: torch.linalg.vander(x).flip(-1),
}

CASES: list[OpCase] = with_torch(
    TORCH,
    [*JOINED, *APART, *CHOICES, *PIECEWISE, *INTERPOLATION, *POLYNOMIALS, *OTHERS],
)

NOT_NATIVE = dict.fromkeys(
    ("ravel_multi_index", "unravel_index"),
    "checks every index, which an expression for one element does not",
)
