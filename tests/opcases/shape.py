"""Samples of the functions that see the same elements in another shape."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError
from opcases.case import At, OpCase, Raises, draw, with_torch

DTYPES = (np.float64, np.float32, np.float16, np.int32, np.bool_, np.complex128)


def made_of(function: Any, ref: Any, args: tuple[Any, ...], op: str, **more: Any) -> OpCase:
    """A case of a function that another op makes up."""
    return OpCase(function, args, ref, ops=(op,), **more)


def by_method(x: Any) -> Any:
    """The same through the methods of tensors and arrays."""
    return x.reshape(3, -1).transpose(1, 0).swapaxes(0, 1).T.ravel()


RESHAPE = [
    OpCase(
        gt.reshape,
        (draw(2, 6), (3, -1)),
        np.reshape,
        dtypes=DTYPES,
        raises=[
            Raises((draw(2, 3), (4, 2)), ShapeError, "reshape: got float64"),
            Raises((draw(2, 3), (4, -1)), ShapeError, r"reshape: got \(2, 3\) for \(4, -1\)"),
            Raises((draw(2, 3), (-1, -1)), ShapeError, "at most one -1"),
            Raises((draw(2, 3), (2, -3)), ShapeError, "at most one -1"),
            Raises((draw(0, 3), (0, -1)), ShapeError, "determined by the rest"),
            Raises((draw(2, 3), (6,)), ArgumentError, "order='K'", {"order": "K"}),
            Raises((draw(2, 3), (6,)), ArgumentError, r"x\.reshape\(len\(x\), -1\)", {"order": 1}),
        ],
    ),
    OpCase(gt.reshape, (draw(2, 6), 12), np.reshape, label="number"),
    OpCase(gt.reshape, (draw(1), ()), np.reshape, label="scalar"),
    OpCase(gt.reshape, (draw(0, 3), (3, 0, 2)), np.reshape, label="empty"),
    OpCase(gt.reshape, (draw(2, 6), (3, 4), "F"), np.reshape, ops=("transpose",), label="fortran"),
    OpCase(gt.reshape, (draw(3, 4).T, (2, 6)), np.reshape, label="strided"),
    made_of(gt.ravel, np.ravel, (draw(2, 3),), "reshape"),
    made_of(gt.ravel, np.ravel, (draw(2, 3), "F"), "transpose", label="fortran"),
    made_of(gt.ravel, np.ravel, (draw(0, 3),), "reshape", label="empty"),
    made_of(gt.flatten, np.ravel, (draw(2, 3),), "reshape"),
    made_of(by_method, by_method, (draw(2, 3),), "transpose"),
]

AXES = [
    made_of(
        gt.expand_dims,
        np.expand_dims,
        (draw(2, 3), 1),
        "reshape",
        raises=[
            Raises((draw(2), 3), AxisError, "expand_dims: got axis 3"),
            Raises((draw(2), (0, -3)), AxisError, "named twice"),
        ],
    ),
    made_of(gt.expand_dims, np.expand_dims, (draw(2, 3), (0, -1)), "reshape", label="several"),
    made_of(gt.expand_dims, np.expand_dims, (draw(), -1), "reshape", label="scalar"),
    made_of(
        gt.squeeze,
        np.squeeze,
        (draw(1, 3, 1),),
        "reshape",
        raises=[
            Raises((draw(1, 3),), ShapeError, r"squeeze: got shape \(1, 3\)", {"axis": 1}),
            Raises((draw(1, 3),), AxisError, "squeeze: got axis 2", {"axis": 2}),
        ],
    ),
    made_of(gt.squeeze, np.squeeze, (draw(1, 3, 1), -1), "reshape", label="axis"),
    made_of(gt.squeeze, np.squeeze, (draw(1, 3, 1), (0, 2)), "reshape", label="axes"),
    made_of(gt.atleast_1d, np.atleast_1d, (draw(),), "reshape"),
    made_of(gt.atleast_1d, np.atleast_1d, (draw(), draw(2, 1)), "reshape", label="several"),
    made_of(gt.atleast_2d, np.atleast_2d, (draw(3),), "reshape"),
    made_of(gt.atleast_2d, np.atleast_2d, (draw(), draw(2, 2, 2)), "reshape", label="several"),
    made_of(gt.atleast_3d, np.atleast_3d, (draw(2, 3),), "reshape"),
    made_of(gt.atleast_3d, np.atleast_3d, (draw(), draw(3)), "reshape", label="several"),
]

TRANSPOSE = [
    OpCase(
        gt.transpose,
        (draw(2, 3, 4), (1, 2, 0)),
        np.transpose,
        dtypes=DTYPES,
        raises=[
            Raises((draw(2, 3), (0, 2)), AxisError, "transpose: got axis 2"),
            Raises((draw(2, 3), (0, -2)), AxisError, "named twice"),
            Raises((draw(2, 3), (0,)), AxisError, "expected all 2"),
            Raises((draw(2, 3, 4), (1, 2)), AxisError, r"use swapaxes\(1, 2\)"),
        ],
    ),
    OpCase(gt.transpose, (draw(2, 3, 4),), np.transpose, label="reversed"),
    OpCase(gt.transpose, (draw(2, 3, 4), (-1, 0, 1)), np.transpose, label="negative"),
    OpCase(gt.transpose, (draw(),), np.transpose, label="scalar"),
    made_of(
        gt.moveaxis,
        np.moveaxis,
        (draw(2, 3, 4), 0, -1),
        "transpose",
        raises=[
            Raises((draw(2, 3), 2, 0), AxisError, "moveaxis: got axis 2"),
            Raises((draw(2, 3), (0, 1), 0), AxisError, "2 sources and 1 dest"),
        ],
    ),
    made_of(gt.moveaxis, np.moveaxis, (draw(2, 3, 4), (0, 1), (2, 0)), "transpose", label="two"),
    made_of(
        gt.swapaxes,
        np.swapaxes,
        (draw(2, 3, 4), 0, -1),
        "transpose",
        raises=[Raises((draw(2, 3), 0, 2), AxisError, "swapaxes: got axis 2")],
    ),
    made_of(
        gt.matrix_transpose,
        np.matrix_transpose,
        (draw(2, 3, 4),),
        "transpose",
        raises=[Raises((draw(3),), AxisError, "axis -2 for an array of 1")],
    ),
]

BROADCAST = [
    OpCase(
        gt.broadcast_to,
        (draw(3, 1), (2, 3, 4)),
        np.broadcast_to,
        dtypes=DTYPES,
        at=[At((2.0,), (6.0,), {"shape": (2, 3)})],
        raises=[
            Raises((draw(3), (2, 4)), ShapeError, "broadcast_to: got float64"),
            Raises((draw(3), (1,)), ShapeError, "broadcast_to: got float64"),
            Raises((draw(2, 3), (3,)), ShapeError, "broadcast_to: got float64"),
        ],
    ),
    OpCase(gt.broadcast_to, (draw(), 3), np.broadcast_to, label="scalar"),
    OpCase(gt.broadcast_to, (draw(1, 3), (0, 3)), np.broadcast_to, label="empty"),
    made_of(
        gt.broadcast_arrays,
        np.broadcast_arrays,
        (draw(2, 1), draw(3), draw(2, 3)),
        "broadcast_to",
        raises=[Raises((draw(2), draw(3)), ShapeError, "do not broadcast")],
    ),
]


def torch_unsqueeze(torch: Any, x: Any, axis: Any) -> Any:
    """PyTorch's takes one axis."""
    for one in sorted(np.atleast_1d(axis) % (x.ndim + np.size(axis))):
        x = torch.unsqueeze(x, int(one))
    return x


TORCH = {
    "reshape": "reshape",
    "reshape-number": lambda torch, x, size: torch.reshape(x, (size,)),
    "reshape-fortran": None,
    "ravel": "ravel",
    "ravel-fortran": None,
    "flatten": "flatten",
    "by_method": lambda torch, x: by_method(x),
    "expand_dims": torch_unsqueeze,
    "squeeze": "squeeze",
    **{name: name for name in ("atleast_1d", "atleast_2d", "atleast_3d", "moveaxis", "swapaxes")},
    "transpose": lambda torch, x, axes=None: torch.permute(x, axes or tuple(range(x.ndim)[::-1])),
    "matrix_transpose": lambda torch, x: x.mT,
    "broadcast_to": lambda torch, x, shape: torch.broadcast_to(x, tuple(np.atleast_1d(shape))),
    "broadcast_arrays": "broadcast_tensors",
}

CASES = with_torch(TORCH, [*RESHAPE, *AXES, *TRANSPOSE, *BROADCAST])
