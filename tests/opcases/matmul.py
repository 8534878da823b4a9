"""Samples of products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ShapeError, UnsupportedError
from opcases.case import OpCase, Raises, draw, with_torch


def product(label: str, *shapes: tuple[int, ...], **more: Any) -> OpCase:
    """A case of matmul on arrays of two shapes."""
    args = tuple(draw(*shape, seed=i) for i, shape in enumerate(shapes))
    return OpCase(gt.matmul, args, np.matmul, label=label, **more)


def made_of(function: Any, ref: Any, args: tuple[Any, ...], *ops: str, **more: Any) -> OpCase:
    """A case of a function that other ops make up."""
    return OpCase(function, args, ref, ops=ops, **more)


def augmented(x: Any, y: Any) -> Any:
    """`x @= y`, on a tensor if either of them is one."""
    x = x + 0 * y
    x @= y
    return x


def reflected(x: Any) -> Any:
    """A list times an array."""
    return [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]] @ x


MATMUL = [
    OpCase(
        gt.matmul,
        (draw(3, 4), draw(4, 2)),
        np.matmul,
        dtypes=(np.float64, np.float32, np.float16, np.int64, np.bool_, np.complex128),
        raises=[
            Raises((draw(3, 4), draw(3, 2)), ShapeError, r"matmul.*\(3, 4\) and \(3, 2\).*transp"),
            Raises((draw(3), draw(4)), ShapeError, r"last axis of the first \(3\).*only axis"),
            Raises((draw(2, 3, 4), draw(3, 2)), ShapeError, r"matmul.*second to last.*\(3\)"),
            Raises((draw(2, 3, 4), draw(3, 4, 2)), ShapeError, "matmul.*broadcast"),
            Raises((draw(3, 4), np.array(2.0)), ShapeError, r"matmul.*use \*"),
            Raises((2.0, draw(3, 4)), ShapeError, r"matmul.*use \*"),
        ],
    ),
    product("vectors", (4,), (4,)),
    product("vector-matrix", (4,), (4, 2)),
    product("matrix-vector", (3, 4), (4,)),
    product("row-column", (1, 4), (4, 1)),
    product("batched", (2, 3, 4), (2, 4, 2)),
    product("batched-matrix", (2, 3, 4), (4, 2)),
    product("matrix-batched", (3, 4), (2, 4, 2)),
    product("batched-vector", (2, 3, 4), (4,)),
    product("vector-batched", (4,), (2, 4, 3)),
    product("twice-batched-vector", (2, 2, 3, 4), (4,)),
    product("vector-twice-batched", (4,), (2, 2, 4, 3)),
    product("broadcast", (2, 1, 3, 4), (2, 4, 2)),
    product("broadcast-both", (2, 1, 2, 3), (1, 3, 3, 2), second_order=False),
    product("broadcast-fewer", (1, 3, 4), (2, 2, 4, 2), second_order=False),
    product("empty-contraction", (3, 0), (0, 2)),
    product("empty-vectors", (0,), (0,)),
    product("empty-batch", (0, 3, 4), (4, 2)),
    product("no-rows", (0, 4), (4, 2)),
    OpCase(gt.matmul, (draw(4, 3).T, draw(2, 4).T), np.matmul, label="transposed"),
    OpCase(gt.matmul, (draw(6, 8)[::2, ::2], draw(4, 4)[:, 1:3]), np.matmul, label="strided"),
    OpCase(gt.matmul, (draw(4, 3, 2).T, draw(4, 2)), np.matmul, label="batched-transposed"),
    OpCase(
        gt.matmul, (np.arange(6).reshape(2, 3), draw(3, 2)), np.matmul, label="integer-and-float"
    ),
    OpCase(
        gt.matmul,
        (np.arange(6).reshape(2, 3), np.arange(3)),
        np.matmul,
        label="integers",
        differentiable=False,
    ),
    made_of(augmented, np.matmul, (draw(3, 3), draw(3, 3, seed=1)), "matmul"),
    made_of(reflected, reflected, (draw(3, 2),), "matmul"),
]

DOT = [
    made_of(
        gt.dot,
        np.dot,
        (draw(4), draw(4, seed=1)),
        "matmul",
        raises=[
            Raises((draw(3), draw(4)), ShapeError, r"got shapes \(3,\) and \(4,\)"),
            Raises((draw(2, 3), draw(2, 4, 2)), ShapeError, r"dot.*axis -2 of the second"),
            Raises((draw(3), draw(3)), UnsupportedError, "dot.*out=", {"out": np.empty(())}),
        ],
    ),
    made_of(gt.dot, np.dot, (draw(3, 4), draw(4, 2)), "matmul", label="matrices"),
    made_of(gt.dot, np.dot, (draw(2, 3, 4), draw(4)), "matmul", label="stack-vector"),
    made_of(gt.dot, np.dot, (draw(2, 3, 4), draw(3, 4, 2)), "einsum", label="stacks"),
    made_of(gt.dot, np.dot, (draw(4), draw(3, 4, 2)), "einsum", label="vector-stack"),
    made_of(gt.dot, np.dot, (draw(), draw(4)), "multiply", label="number"),
    made_of(
        gt.vdot,
        np.vdot,
        (draw(2, 3), draw(3, 2)),
        "matmul",
        dtypes=(np.float64, np.float32, np.complex128),
        raises=[Raises((draw(2, 3), draw(4)), ShapeError, r"vdot: got shapes \(6,\) and \(4,\)")],
    ),
    made_of(
        gt.inner,
        np.inner,
        (draw(2, 3), draw(4, 3)),
        "einsum",
        raises=[Raises((draw(2, 3), draw(3, 2)), ShapeError, "inner.*axis -1 of the second")],
    ),
    made_of(gt.inner, np.inner, (draw(3), draw(3, seed=1)), "matmul", label="vectors"),
    made_of(gt.inner, np.inner, (draw(3), draw(2, 3)), "einsum", label="vector-matrix"),
    made_of(gt.inner, np.inner, (draw(2, 3), draw()), "multiply", label="number"),
]

OUTER = [
    made_of(gt.outer, np.outer, (draw(3), draw(2)), "multiply"),
    made_of(gt.outer, np.outer, (draw(2, 2), draw()), "multiply", label="raveled"),
    made_of(gt.kron, np.kron, (draw(2, 3), draw(3, 2)), "multiply"),
    made_of(gt.kron, np.kron, (draw(2), draw(2, 2)), "multiply", label="vector-matrix"),
    made_of(gt.kron, np.kron, (draw(), draw(2)), "multiply", label="number"),
]


def torch_dot(torch: Any, x: Any, y: Any) -> Any:
    """PyTorch's own is for vectors only."""
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    return torch.tensordot(x, y, ([-1], [max(y.ndim - 2, 0)]))


def widened(x: Any, y: Any) -> Any:
    """Arrays of one dtype, which PyTorch does not see to."""
    return x.to((x.reshape(-1)[:0] + y.reshape(-1)[:0]).dtype), y


def raveled(name: str) -> Any:
    """PyTorch's function of vectors."""
    return lambda torch, x, y: getattr(torch, name)(x.reshape(-1), y.reshape(-1))


TORCH = {
    "matmul": lambda torch, x, y: torch.matmul(*widened(x, y)),
    "dot": torch_dot,
    "vdot": raveled("vdot"),
    "inner": "inner",
    "outer": raveled("outer"),
    "kron": "kron",
}

CASES = with_torch(TORCH, [*MATMUL, *DOT, *OUTER])
