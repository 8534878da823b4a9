"""Samples of contractions."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, ShapeError, UnsupportedError
from opcases.case import OpCase, Raises, draw, with_torch


def einsum(subscripts: str, *shapes: tuple[int, ...], ops: Any = (), **more: Any) -> OpCase:
    """A case of einsum on arrays of the given shapes."""
    args = tuple(draw(*shape, seed=i) for i, shape in enumerate(shapes))
    ops = ops or (["einsum"] if len(shapes) > 1 else ["sum"])
    more = {"label": subscripts.replace(" ", "_"), "rtol": 64, **more}
    return OpCase(gt.einsum, (subscripts, *args), np.einsum, ops=ops, **more)


def tensordot(label: str, x: tuple[int, ...], y: tuple[int, ...], axes: Any, **more: Any) -> OpCase:
    """A case of tensordot on arrays of two shapes."""
    args, params = (draw(*x), draw(*y, seed=1)), {"axes": axes}
    return OpCase(gt.tensordot, args, np.tensordot, params, ["einsum"], label=label, **more)


X, Y = draw(3, 4), draw(4, 2)
FIT = r"einsum.*\(3, 4\), \(3, 2\).*same size wherever 'j' stands"

SAMPLES = [
    OpCase(
        gt.einsum,
        ("ij,jk->ik", X, Y),
        np.einsum,
        dtypes=(np.float64, np.float32, np.int32, np.bool_, np.complex128),
        raises=[
            Raises(("ij,jk->ik", X, draw(3, 2)), ShapeError, FIT),
            Raises(("ij,jk->ik", X), ArgumentError, "einsum: got 1 arrays.*expected 2"),
            Raises(("ij->i", X, Y), ArgumentError, "einsum: got 2 arrays.*expected 1"),
            Raises(("ijk->i", X), ShapeError, r"einsum: got shape \(3, 4\) for 'ijk'"),
            Raises(("i->i", X), ShapeError, "einsum.*one letter for each axis"),
            Raises(("i...j...->i", X), ShapeError, "einsum.*'...' once"),
            Raises(("ij->k", X), ArgumentError, "einsum: got the result 'k'.*letters of the"),
            Raises(("ij->ii", X), ArgumentError, "einsum: got the result 'ii'.*each once"),
            Raises(("i1->i", X), ArgumentError, "einsum: got '1'"),
            Raises(("i...->i", X), ArgumentError, "einsum.*'...' in arrays"),
            Raises(("ii", X), ShapeError, "einsum.*same size wherever 'i' stands"),
            Raises(("ij", X), UnsupportedError, "einsum: got out=", {"out": np.empty(())}),
            Raises(("i,i,i", *[draw(2)] * 3), ArgumentError, "optimize='x'", {"optimize": "x"}),
            Raises((X, Y), ArgumentError, "einsum: got (ndarray|Tensor) first"),
        ],
    ),
    # One array: transposes, sums, diagonals.
    einsum("ij->ji", (3, 4), ops=["transpose"]),
    einsum("ji", (3, 4), ops=["transpose"]),
    einsum("ij", (3, 4), ops=["transpose"]),
    einsum("ij->", (3, 4)),
    einsum("ij->j", (3, 4)),
    einsum("kij->ji", (2, 3, 4)),
    einsum("ii", (3, 3)),
    einsum("ii->i", (3, 3), ops=["diagonal"]),
    einsum("iij->ji", (3, 3, 2), ops=["diagonal"]),
    einsum("iii->i", (3, 3, 3), ops=["diagonal"]),
    einsum("ijij->", (2, 3, 2, 3)),
    einsum("i...->...", (3, 2, 2)),
    einsum("...ij->...ji", (2, 3, 4), ops=["transpose"]),
    # Two arrays.
    einsum("i,i", (3,), (3,)),
    einsum("i,i->i", (3,), (3,)),
    einsum("i,j->ij", (3,), (2,)),
    einsum("i,j->ji", (3,), (2,)),
    einsum("i,j->", (3,), (2,)),
    einsum(",i->i", (), (3,)),
    einsum(",", (), ()),
    einsum("ij,jk->ki", (3, 4), (4, 2)),
    einsum("ij,kj", (3, 4), (2, 4)),
    einsum("ij,j", (3, 4), (4,)),
    einsum("ij,ij->i", (3, 4), (3, 4)),
    einsum("ij,ij->", (3, 4), (3, 4)),
    einsum("bij,bjk->bik", (2, 3, 4), (2, 4, 2)),
    einsum("bij,bkj->kbi", (2, 3, 4), (2, 2, 4)),
    einsum("abcd,cbe->ead", (2, 2, 3, 2), (3, 2, 2), second_order=False),
    einsum("ij,k->i", (3, 4), (2,)),
    einsum("ii,i->i", (3, 3), (3,)),
    einsum("ii,jj->ij", (3, 3), (2, 2)),
    einsum("iij,jk->k", (3, 3, 2), (2, 4)),
    einsum("ba,cb", (3, 4), (2, 3)),
    einsum("bA,Ac", (3, 4), (4, 2)),
    einsum(" ij , jk -> ik ", (3, 4), (4, 2)),
    einsum("...ij,...jk->...ik", (2, 3, 4), (2, 4, 2)),
    einsum("...ij,...jk", (2, 1, 3, 4), (2, 4, 2)),
    einsum("...,...", (2, 3), (3,)),
    einsum("i...,i->...", (3, 2), (3,)),
    einsum("...i,j->...ij", (2, 3), (2,)),
    # Axes of size 1 broadcast, named or not.
    einsum("ij,jk->ik", (3, 1), (4, 2), label="size-1"),
    einsum("ij,ij->ij", (3, 1), (1, 2), label="size-1-both"),
    einsum("i,i->i", (1,), (3,), label="size-1-single"),
    einsum("i,i,i", (1,), (3,), (3,), label="size-1-of-three"),
    einsum("ij,ij->i", (3, 1), (3, 1), label="size-1-everywhere"),
    einsum("ij,jk->ik", (3, 0), (0, 2), label="empty-contraction"),
    einsum("bij,bjk->bik", (0, 3, 4), (0, 4, 2), label="empty-batch"),
    # Several arrays, in pairs.
    einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    einsum("ij,jk,ki->", (2, 3), (3, 4), (4, 2)),
    einsum("i,i,i->i", (3,), (3,), (3,)),
    einsum("i,j,k->kij", (2,), (3,), (2,)),
    einsum("ij,ik,il->jkl", (3, 2), (3, 2), (3, 2)),
    einsum("ab,bc,cd,de", (2, 3), (3, 2), (2, 3), (3, 2), second_order=False),
    einsum("...i,ij,...j->...", (2, 3), (3, 4), (2, 4)),
    einsum("i,ii,i", (3,), (3, 3), (3,)),
    einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 2), params={"optimize": "greedy"}, label="greedy"),
    einsum(
        "ij,jk,kl->il",
        (2, 3),
        (3, 4),
        (4, 2),
        params={"optimize": ["einsum_path", (1, 2), (0, 1)]},
        label="path",
    ),
    einsum(
        "ij,jk,kl->il",
        (2, 3),
        (3, 4),
        (4, 2),
        params={"optimize": ["einsum_path", (0, 1, 2)]},
        label="all-at-once",
    ),
    einsum("ij,j", (3, 4), (4,), params={"dtype": np.float64}, label="dtype"),
    # NumPy's other form, with lists of labels.
    OpCase(gt.einsum, (X, [0, 1], Y, [1, 2]), np.einsum, label="lists"),
    OpCase(gt.einsum, (X, [0, 1], Y, [1, 2], [2, 0]), np.einsum, label="lists-and-result"),
    tensordot("matrices", (2, 3), (3, 4), 1),
    tensordot("two-axes", (2, 3, 4), (3, 4, 2), 2),
    tensordot("none", (2, 3), (2,), 0),
    tensordot("all", (2, 3), (2, 3), 2),
    tensordot("one-pair", (2, 3, 4), (3, 2), (1, 0)),
    tensordot("negative", (2, 3, 4), (3, 2), (-2, -2)),
    tensordot("crossed", (2, 3, 4), (4, 2, 3), ([0, 1], [1, 2])),
    tensordot("out-of-order", (2, 3, 4), (2, 3, 4), ([2, 0], [2, 0])),
    tensordot("empty-contraction", (2, 0), (0, 3), 1),
    tensordot(
        "errors",
        (2, 2),
        (2, 2),
        1,
        raises=[
            Raises((X, draw(3, 2)), ShapeError, "tensordot.*same sizes", {"axes": 1}),
            Raises((X, Y), AxisError, "tensordot: got axis 2", {"axes": (2, 0)}),
            Raises((X, Y), AxisError, "tensordot.*each once", {"axes": ([1, 1], [0, 0])}),
            Raises((X, Y), AxisError, "tensordot.*as many", {"axes": ([1], [0, 1])}),
        ],
    ),
]


def torch_einsum(torch: Any, *args: Any, **how: Any) -> Any:
    """How it is computed is not for PyTorch."""
    return torch.einsum(*args)


def torch_tensordot(torch: Any, x: Any, y: Any, axes: Any) -> Any:
    """PyTorch's has lists where NumPy takes a number for one axis."""
    dims = axes if isinstance(axes, int) else [np.atleast_1d(side).tolist() for side in axes]
    return torch.tensordot(x, y, dims)


TORCH = {"einsum": torch_einsum, "tensordot": torch_tensordot}

CASES = with_torch(TORCH, SAMPLES)
