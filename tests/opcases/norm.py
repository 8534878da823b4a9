"""Samples of norms."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError
from opcases.case import At, OpCase, Raises, draw, with_torch

X, V, STACK = draw(3, 4), draw(5), draw(2, 3, 4)
ZERO = np.zeros(3)
RANK_1 = np.array([[3.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
SINGLE_AND_DOUBLE = (np.float64, np.float32, np.complex128)
FLOATS = (np.float64, np.float32, np.float16)


def torch_norm(
    torch: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False
) -> Any:
    return torch.linalg.norm(x, ord, axis, keepdims)


def of(label: str, x: Any, *ops: str, **more: Any) -> OpCase:
    """A case of norm; parameters besides those of cases are norm's."""
    own = {key: more.pop(key) for key in ("ord", "axis", "keepdims") if key in more}
    more = {"torch": torch_norm, **more}
    return OpCase(gt.norm, (x,), np.linalg.norm, own, ops or ["vector_norm"], label=label, **more)


SAMPLES = [
    of(
        "all",
        X,
        dtypes=(*FLOATS, np.int64, np.complex128),
        at=[
            At((np.zeros((2, 2)),), (np.zeros((2, 2)),)),
            At((np.array([3.0, 4.0]),), (np.array([0.6, 0.8]),)),
            At((ZERO,), (ZERO,), {"ord": 1}),
            At((ZERO,), (ZERO,), {"ord": 3}),
            At((ZERO,), (ZERO,), {"ord": 1.5}),
            At((ZERO,), (ZERO,), {"ord": np.inf}),
            At((np.array([2.0, -2.0, 0.0]),), (np.array([0.5, -0.5, 0.0]),), {"ord": np.inf}),
            At((np.array([0.0, 2.0, -2.0]),), (np.array([0.0, 2.0, -2.0]),), {"ord": 0.5}),
            At(
                (np.array([[0.0, 0.0], [3.0, 4.0]]),),
                (np.array([[0.0, 0.0], [0.6, 0.8]]),),
                {"axis": 1},
            ),
            At((np.zeros((2, 2)),), (np.zeros((2, 2)),), {"ord": 1}),
        ],
        raises=[
            Raises((X,), AxisError, "norm: got axis 2", {"axis": 2}),
            Raises((STACK,), ShapeError, "norm.*one axis for vectors or two", {"ord": 2}),
            Raises((STACK,), ShapeError, "norm.*one axis", {"axis": (0, 1, 2)}),
            Raises((V,), ArgumentError, "norm: got ord='fro' for vectors", {"ord": "fro"}),
            Raises((X,), ArgumentError, "norm: got ord=3 for matrices", {"ord": 3}),
        ],
    ),
    of("vector", V, dtypes=FLOATS),
    of("stack", STACK),
    of("axis", X, axis=1),
    of("negative-axis", X, axis=-2, keepdims=True),
    of("keepdims", X, keepdims=True),
    of("empty-axis", draw(0, 3), axis=1),
    # A norm of 0 has no second derivative.
    of("over-empty", draw(3, 0), axis=1, second_order=False),
    of("transposed", STACK.T, axis=0),
    of("2", V, ord=2),
    of("3", V, "vector_norm", "size_power", ord=3, dtypes=FLOATS),
    # An element of 0 has a second derivative for p > 2: none of its own, and that of the norm.
    of("4-with-0", np.array([[0.0, 0.5], [1.5, 0.0]]), ord=4, axis=0),
    of("complex-4-with-0", np.array([1.0 + 1j, 0.0, -2.0j]), ord=4),
    of("3-axis", X, ord=3, axis=0, keepdims=True),
    of("1.5", V, ord=1.5),
    of("minus-1", V, ord=-1, rtol=64),
    of("1", V, "abs", "sum", ord=1),
    of("0", V, "sign", ord=0),
    of("inf", V, "abs", "max", ord=np.inf),
    of("minus-inf", V, "abs", "min", ord=-np.inf),
    of("inf-axis", X, "abs", "max", ord=np.inf, axis=0),
    of("fro", X, ord="fro"),
    of("fro-axes", STACK, ord="fro", axis=(0, 2), keepdims=True),
    of("axes", STACK, axis=(2, 1)),
    of("matrix-1", X, "sum", "max", ord=1),
    of("matrix-minus-1", X, "sum", "min", ord=-1),
    of("matrix-inf", X, "sum", "max", ord=np.inf),
    of("matrix-minus-inf", X, "sum", "min", ord=-np.inf, keepdims=True),
    of("matrix-axes", STACK, "sum", "max", ord=1, axis=(2, 0)),
    of("complex", X + 1j * draw(3, 4, seed=1), axis=0),
    of("complex-3", V + 1j * draw(5, seed=1), ord=3),
    OpCase(gt.linalg.vector_norm, (STACK,), np.linalg.vector_norm),
    OpCase(
        gt.linalg.vector_norm,
        (STACK,),
        np.linalg.vector_norm,
        {"axis": (0, 2), "ord": 3, "keepdims": True},
        label="axes",
        rtol=64,
    ),
    OpCase(
        gt.linalg.matrix_norm,
        (STACK,),
        np.linalg.matrix_norm,
        ops=["vector_norm"],
        raises=[
            Raises((V,), ShapeError, r"matrix_norm: got shape \(5,\)"),
        ],
    ),
    OpCase(
        gt.linalg.matrix_norm,
        (STACK,),
        np.linalg.matrix_norm,
        {"ord": np.inf, "keepdims": True},
        ["sum", "max"],
        label="inf",
    ),
    # ---- by singular values ----
    of("nuc", X, "svdvals", ord="nuc", rtol=64, dtypes=SINGLE_AND_DOUBLE, torch=None),
    of(
        "nuc-axes",
        STACK,
        "svdvals",
        ord="nuc",
        axis=(2, 0),
        keepdims=True,
        rtol=64,
        at=[
            # The rank is 1: the directions in which nothing is there are left out.
            At((RANK_1,), (RANK_1 / 5,), {"ord": "nuc"}),
            At((np.zeros((2, 3)),), (np.zeros((2, 3)),), {"ord": "nuc"}),
            # Two equal singular values share.
            At((np.diag([2.0, 2.0, 1.0]),), (np.diag([0.5, 0.5, 0.0]),), {"ord": 2}),
            At((np.diag([2.0, 1.0, 1.0]),), (np.diag([0.0, 0.5, 0.5]),), {"ord": -2}),
        ],
        torch=None,
    ),
    of("matrix-2", X, "svdvals", "max", ord=2, rtol=64),
    of("matrix-2-complex", X + 1j * draw(3, 4, seed=1), "svdvals", ord=2, rtol=64),
    of("matrix-minus-2", STACK, "svdvals", "min", ord=-2, axis=(1, 2), rtol=64),
    of("nuc-empty", draw(0, 3), "sum", ord="nuc", torch=None),
    OpCase(
        gt.linalg.matrix_norm,
        (STACK,),
        np.linalg.matrix_norm,
        {"ord": "nuc", "keepdims": True},
        ["svdvals"],
        label="nuc",
        rtol=64,
    ),
]


def torch_vector_norm(
    torch: Any, x: Any, axis: Any = None, keepdims: bool = False, ord: float = 2
) -> Any:
    return torch.linalg.vector_norm(x, ord, axis, keepdims)


def torch_matrix_norm(torch: Any, x: Any, ord: Any = "fro", keepdims: bool = False) -> Any:
    return torch.linalg.matrix_norm(x, ord, keepdim=keepdims)


TORCH = {"vector_norm": torch_vector_norm, "matrix_norm": torch_matrix_norm}

CASES = with_torch(TORCH, SAMPLES)

# A power of the forward, by another way of multiplying.
ULPS = {"size_power": 4}
