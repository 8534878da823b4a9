"""Samples of counting in bins; how many elements bins have is known to no compiled function."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, ShapeError
from opcases.case import OpCase, Raises, draw

X, Y, WEIGHTS = draw(7), draw(7, seed=1), draw(7, seed=2)
EDGES = np.array([-1.5, 0.0, 0.5, 1.5])
COUNTED = ("searchsorted", "scatter")
NUMBERS = np.array([0, 2, 2, 4])
SUMMED = draw(4)


def untracked(function: Any, args: tuple[Any, ...], ref: Any, **more: Any) -> OpCase:
    """A case of a function without derivatives."""
    return OpCase(function, args, ref, differentiable=False, **more)


def counted(function: Any, args: tuple[Any, ...], ref: Any, **more: Any) -> OpCase:
    """Counts, which have no derivative, and edges, which move with the data."""
    return OpCase(function, args, ref, **more)


def bincount(weights: Any, **params: Any) -> Any:
    return gt.bincount(NUMBERS, weights, **params)


def torch_histogram(torch: Any, x: Any, bins: int) -> Any:
    counts, edges = torch.histogram(x.detach(), bins)
    return counts.to(torch.int64), edges


def weighted(weights: Any, **params: Any) -> Any:
    return gt.histogram(X, weights=weights, **params)[0]


def weighted_2d(weights: Any, **params: Any) -> Any:
    return gt.histogram2d(X, Y, weights=weights, **params)[0]


CASES = [
    OpCase(
        bincount,
        (SUMMED,),
        lambda weights, minlength=0: np.bincount(NUMBERS, weights, minlength),
        ops=("scatter",),
        dtypes=(np.float64, np.float32, np.int8),
        raises=[Raises((draw(3),), ShapeError, "bincount: got x of shape")],
        torch=lambda torch, weights: torch.zeros(5, dtype=torch.float64).index_add(
            0, torch.tensor(NUMBERS), weights
        ),
    ),
    OpCase(
        bincount,
        (SUMMED,),
        lambda weights, minlength=0: np.bincount(NUMBERS, weights, minlength),
        {"minlength": 7},
        ops=("scatter",),
        label="minlength",
    ),
    # NumPy refuses complex weights here, and takes them in `histogram`.
    OpCase(
        bincount,
        (SUMMED + 1j * draw(4, seed=1),),
        lambda weights: bincount(weights.real) + 1j * bincount(weights.imag),
        ops=("scatter",),
        label="complex",
    ),
    OpCase(
        weighted,
        (WEIGHTS + 1j * X,),
        lambda weights, **params: np.histogram(X, weights=weights, **params)[0],
        {"bins": 3},
        ops=("scatter",),
        label="complex",
        dtypes=(np.complex128,),
    ),
    counted(
        gt.histogram,
        (X, 3),
        np.histogram,
        ops=("bin_edges", *COUNTED),
        dtypes=(np.float64, np.int8),
        torch=torch_histogram,
        raises=[
            Raises((X, 0), ArgumentError, "histogram: got bins=0"),
            Raises((X, draw(2, 2)), ShapeError, "histogram: got bins of shape"),
            Raises((X, 3, (1.0, 0.0)), ArgumentError, "expected the lower bound first"),
            Raises((np.array([np.nan]), 3), ArgumentError, "expected a finite one"),
            Raises((X, 3, None, None, draw(2)), ShapeError, "weights of shape"),
            Raises((X, "auto", None, None, X), ArgumentError, "got bins='auto' and weights="),
        ],
    ),
    untracked(
        gt.histogram,
        (draw(2, 3), 2, (-1.0, 1.0), True),
        np.histogram,
        ops=("bin_edges", *COUNTED),
        label="density",
    ),
    counted(
        gt.histogram,
        (np.array([-1.5, 0.0, 0.5, 1.5, 2.0, np.nan]), EDGES),
        np.histogram,
        ops=COUNTED,
        label="edges",
    ),
    counted(
        gt.histogram,
        (np.ones(3), 2),
        np.histogram,
        ops=("bin_edges",),
        differences=False,  # the least and the largest element are one
        label="constant",
    ),
    untracked(gt.histogram, (draw(0), 2), np.histogram, ops=("bin_edges",), label="empty"),
    OpCase(
        weighted,
        (WEIGHTS,),
        lambda weights, **params: np.histogram(X, weights=weights, **params)[0],
        {"bins": 3},
        ops=COUNTED,
        label="weights",
    ),
    OpCase(
        weighted,
        (WEIGHTS + 3,),
        lambda weights, **params: np.histogram(X, weights=weights, **params)[0],
        {"bins": EDGES, "density": True},
        ops=("scatter", "divide"),
        label="weights-density",
        dtypes=(np.float64,),
    ),
    counted(gt.histogram_bin_edges, (X, 3), np.histogram_bin_edges, ops=("bin_edges",)),
    counted(
        gt.histogramdd,
        (draw(5, 2), (2, 3)),
        np.histogramdd,
        ops=("bin_edges", *COUNTED),
        raises=[
            Raises((draw(5, 2), (2, 3, 4)), ArgumentError, "histogramdd: got bins for 3"),
            Raises((draw(5, 2, 2), 2), ShapeError, "histogramdd: got shape"),
        ],
    ),
    counted(
        gt.histogramdd,
        ([X, Y], 2, [(-1.0, 1.0), None], True),
        np.histogramdd,
        ops=("bin_edges", *COUNTED),
        label="density",
    ),
    counted(gt.histogram2d, (X, Y, 3), np.histogram2d, ops=("bin_edges", *COUNTED)),
    counted(gt.histogram2d, (X, Y, EDGES), np.histogram2d, ops=COUNTED, label="edges"),
    OpCase(
        weighted_2d,
        (WEIGHTS,),
        lambda weights, **params: np.histogram2d(X, Y, weights=weights, **params)[0],
        {"bins": (2, EDGES)},
        ops=("scatter",),
        label="weights",
        dtypes=(np.float64,),
    ),
]

NOT_NATIVE = {"bin_edges": "raises where the range of the data is not finite"}
