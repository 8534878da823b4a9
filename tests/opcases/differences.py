"""Samples of differences, gradients, integrals, products of vectors, windows and convolution."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError
from gradtape.ops.arrays.windows import overlap_add, sliding_windows
from opcases.case import At, OpCase, Raises, draw

V, M = draw(5), draw(3, 4)
GRID = np.array([0.0, 0.5, 1.5, 1.75, 3.0])
ALL = (np.float64, np.float32, np.float16, np.int8, np.complex128)

DIFFERENCES = [
    OpCase(
        gt.diff,
        (M,),
        np.diff,
        ops=("subtract",),
        dtypes=ALL,
        torch="diff",
        raises=[
            Raises((np.array(1.0),), ShapeError, "diff: got shape"),
            Raises((M,), ArgumentError, "diff: got n=-1", {"n": -1}),
            Raises((M,), AxisError, "diff: got axis 2", {"axis": 2}),
        ],
    ),
    OpCase(gt.diff, (M,), np.diff, {"n": 2, "axis": 0}, ops=("subtract",), label="twice"),
    OpCase(
        lambda x, before, after: gt.diff(x, prepend=before, append=after),
        (M, np.array(0.5), draw(3, 1)),
        lambda x, before, after: np.diff(x, prepend=before, append=after),
        ops=("subtract",),
        label="diff-around",
    ),
    OpCase(gt.diff, (M > 0,), np.diff, ops=("not_equal",), differentiable=False, label="truths"),
    OpCase(gt.diff, (draw(0),), np.diff, ops=("subtract",), batched=False, label="empty"),
    OpCase(gt.ediff1d, (M,), np.ediff1d, ops=("subtract",), dtypes=ALL[:4]),
    OpCase(gt.ediff1d, (V, draw(2), np.array(3.0)), np.ediff1d, ops=("subtract",), label="around"),
]

GRADIENT = [
    OpCase(
        gt.gradient,
        (V,),
        np.gradient,
        ops=("divide",),
        dtypes=ALL[:3],
        torch=lambda torch, x: torch.gradient(x)[0],
        raises=[
            Raises((V,), ArgumentError, "gradient: got edge_order=3", {"edge_order": 3}),
            Raises((V, 1.0, 2.0), ArgumentError, "gradient: got 2 spacings"),
            Raises((V, draw(3)), ShapeError, "gradient: got coordinates"),
            Raises((draw(1),), ShapeError, "gradient: got 1 samples"),
        ],
    ),
    OpCase(gt.gradient, (draw(3, 3),), np.gradient, ops=("divide",), label="both-axes"),
    OpCase(gt.gradient, (V, 0.5), np.gradient, {"edge_order": 2}, ops=("divide",), label="second"),
    OpCase(gt.gradient, (V, GRID), np.gradient, ops=("divide",), label="grid"),
    OpCase(
        gt.gradient,
        (V, GRID),
        np.gradient,
        {"edge_order": 2},
        ops=("divide",),
        label="grid-second",
        torch=lambda torch, x, grid, edge_order: torch.gradient(
            x, spacing=(grid,), edge_order=edge_order
        )[0],
    ),
    OpCase(
        gt.gradient,
        (draw(5, 2), GRID),
        np.gradient,
        {"axis": 0, "edge_order": 2},
        ops=("divide",),
        label="grid-axis",
    ),
    OpCase(gt.gradient, (draw(2),), np.gradient, ops=("divide",), label="two"),
]

INTEGRALS = [
    OpCase(gt.trapezoid, (M,), np.trapezoid, ops=("sum",), torch="trapezoid"),
    OpCase(gt.trapezoid, (V, GRID), np.trapezoid, ops=("sum",), label="x", torch="trapezoid"),
    OpCase(gt.trapezoid, (M, draw(3, 4)), np.trapezoid, ops=("sum",), label="x-each"),
    OpCase(gt.trapezoid, (M, None, np.array(0.5), 0), np.trapezoid, ops=("sum",), label="dx-axis"),
    OpCase(gt.trapezoid, (M, draw(3), 1.0, 0), np.trapezoid, ops=("sum",), label="x-axis"),
    OpCase(
        gt.unwrap,
        (np.array([0.5, 3.0, 6.0, 0.25, 4.0]),),
        np.unwrap,
        ops=("cumsum",),
        at=[At(([0.0, 4.0, 1.0],), (np.ones(3),))],
    ),
    OpCase(gt.unwrap, (3 * M,), np.unwrap, {"axis": 0, "period": 3}, ops=("cumsum",), label="axis"),
    OpCase(
        gt.unwrap,
        (np.array([[0, 3, 1, 5], [2, 7, 1, 4]]),),
        np.unwrap,
        {"period": 4},
        ops=("cumsum",),
        differentiable=False,
        label="whole",
    ),
    OpCase(gt.unwrap, (3 * M,), np.unwrap, {"discont": 4.0}, ops=("cumsum",), label="discont"),
]

A, B = draw(2, 3), draw(3, seed=1)
Z = A + 1j * draw(2, 3, seed=2)
PRODUCTS = [
    OpCase(
        gt.cross,
        (A, B),
        np.cross,
        ops=("cross",),
        dtypes=ALL,
        torch=lambda torch, a, b: torch.linalg.cross(a, b.expand(2, 3)),
        raises=[
            Raises((draw(4), B), ShapeError, "cross: got vectors of 4"),
            Raises((np.array(1.0), B), ShapeError, "cross: got shape"),
        ],
    ),
    OpCase(
        gt.cross,
        (draw(3, 2), draw(2, 3)),
        np.cross,
        {"axisa": 0, "axisb": 1, "axisc": 0},
        ops=("cross",),
        label="axes",
    ),
    OpCase(gt.cross, (draw(3, 2), draw(3, 2)), np.cross, {"axis": 0}, ops=("cross",), label="axis"),
    OpCase(gt.cross, (Z, B), np.cross, ops=("cross",), label="complex", dtypes=(np.complex128,)),
    OpCase(gt.cross, (A.astype(np.float32), B), np.cross, ops=("cross",), label="mixed", dtypes=()),
    OpCase(gt.cross, (A[:0], B), np.cross, ops=("cross",), label="empty"),
    # NumPy warns about vectors of two components.
    OpCase(
        gt.cross,
        (draw(4, 2), draw(2)),
        lambda a, b: a[..., 0] * b[1] - a[..., 1] * b[0],
        ops=("multiply",),
        label="plane",
    ),
    OpCase(
        gt.cross,
        (draw(4, 2), B),
        lambda a, b: np.cross(np.pad(a, ((0, 0), (0, 1))), b),
        ops=("stack",),
        label="plane-left",
    ),
    OpCase(
        gt.cross,
        (B, draw(4, 2)),
        lambda a, b: np.cross(a, np.pad(b, ((0, 0), (0, 1)))),
        ops=("stack",),
        label="plane-right",
    ),
    OpCase(
        gt.vecdot,
        (A, B),
        np.vecdot,
        ops=("sum",),
        dtypes=(*ALL, np.bool_),
        torch="linalg.vecdot",
        raises=[Raises((A, draw(2)), ShapeError, "vecdot: got shapes")],
    ),
    OpCase(gt.vecdot, (Z, Z * 2j), np.vecdot, ops=("sum",), label="complex"),
    OpCase(
        gt.vecdot,
        (A, A + 1),
        lambda x, y, axis, keepdims: (x * y).sum(axis, keepdims=keepdims),
        {"axis": 0, "keepdims": True},
        ops=("sum",),
        label="axis",
    ),
    OpCase(
        gt.matvec,
        (draw(2, 2, 3), A),
        lambda x, y: (x @ y[..., None])[..., 0],
        ops=("matmul",),
        dtypes=ALL,
        raises=[
            Raises((B, B), ShapeError, "matvec: got shape"),
            Raises((A, draw(2)), ShapeError, "matvec: got shapes"),
        ],
    ),
    OpCase(
        gt.vecmat,
        (A, draw(3, 2)),
        lambda x, y: x @ y,
        ops=("matmul",),
        dtypes=ALL[:4],
        raises=[Raises((B, A), ShapeError, "vecmat: got shapes")],
    ),
]

WINDOWS = [
    OpCase(
        gt.sliding_window_view,
        (draw(3, 3), (2, 2)),
        np.lib.stride_tricks.sliding_window_view,
        ops=("sliding_windows", "overlap_add"),
        dtypes=ALL,
        raises=[
            Raises((M, 2), ArgumentError, "sliding_window_view: got window_shape 2"),
            Raises((V, 6), ShapeError, "sliding_window_view: got a window"),
        ],
    ),
    OpCase(
        gt.sliding_window_view,
        (M, 3),
        np.lib.stride_tricks.sliding_window_view,
        {"axis": -1},
        ops=("sliding_windows",),
        label="axis",
        torch=lambda torch, x, size, axis: x.unfold(axis, size, 1),
    ),
    OpCase(
        gt.sliding_window_view,
        (V, (2, 2)),
        np.lib.stride_tricks.sliding_window_view,
        {"axis": (0, 0)},
        ops=("sliding_windows",),
        label="twice",
    ),
    OpCase(
        overlap_add,
        (draw(3, 2),),
        lambda x, **_: np.array([x[0, 0], x[1, 0] + x[0, 1], x[2, 0] + x[1, 1], x[2, 1]]),
        {"shape": (4,), "window": (2,), "axis": (0,)},
        ops=("overlap_add",),
        label="overlap_add",
    ),
    OpCase(
        sliding_windows,
        (V,),
        lambda x, window, axis: np.stack([x[:4], x[1:]], -1),
        {"window": (2,), "axis": (0,)},
        ops=("sliding_windows",),
        label="sliding_windows",
    ),
]


def pairs(function: Any, ref: Any) -> list[OpCase]:
    """Both orders of lengths, even and odd."""
    kinds = [(5, 2, "same"), (2, 5, "same"), (3, 4, "same"), (5, 2, "valid"), (2, 5, "full")]
    return [
        OpCase(
            function,
            (draw(n), draw(m, seed=1)),
            ref,
            {"mode": mode},
            ops=("convolve_part",),
            label=f"{mode}-{n}-{m}",
        )
        for n, m, mode in kinds
    ]


Z1, Z2 = draw(4) + 1j * draw(4, seed=1), draw(3) - 1j * draw(3, seed=1)
CONVOLUTION = [
    OpCase(
        gt.convolve,
        (V, draw(3)),
        np.convolve,
        ops=("convolve_part",),
        dtypes=ALL,
        torch=lambda torch, x, y: torch.nn.functional.conv1d(
            x[None, None], y.flip(0)[None, None], padding=y.shape[0] - 1
        )[0, 0],
        raises=[
            Raises((M, V), ShapeError, "convolve: got shapes"),
            Raises((draw(0), V), ShapeError, "convolve: got shapes"),
            Raises((V, V), ArgumentError, "convolve: got mode='all'", {"mode": "all"}),
        ],
    ),
    OpCase(gt.correlate, (V, draw(3)), np.correlate, ops=("convolve_part",), dtypes=ALL),
    OpCase(gt.convolve, (Z1, Z2), np.convolve, ops=("convolve_part",), label="complex"),
    OpCase(gt.correlate, (Z1, Z2), np.correlate, ops=("convolve_part",), label="complex"),
    OpCase(gt.correlate, (Z2, Z1), np.correlate, ops=("convolve_part",), label="complex-short"),
    OpCase(gt.convolve, (np.array(2.0), V), np.convolve, ops=("convolve_part",), label="number"),
    *pairs(gt.convolve, np.convolve),
    *pairs(gt.correlate, np.correlate),
]

CASES: list[OpCase] = [
    *DIFFERENCES,
    *GRADIENT,
    *INTEGRALS,
    *PRODUCTS,
    *WINDOWS,
    *CONVOLUTION,
]
