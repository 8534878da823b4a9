"""Samples of medians, quantiles and averages."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, DTypeError, ShapeError, UnsupportedError
from gradtape.ops.arrays.quantile import blend
from opcases.case import At, OpCase, Raises, draw

REAL = (np.float64, np.float32, np.float16, np.int8)
ROWS = draw(2, 5)
EVEN = draw(2, 4)
WITH_NAN = np.array([[1.0, np.nan, 3.0, 2.0], [4.0, 2.0, 1.0, 3.5]])
INF = np.inf
PARTED = ("argpartition", "gather", "scatter")
SHARES = np.array([0.13, 0.57, 0.88])


def torch_quantile(torch: Any, x: Any, q: Any, axis: int | None = None, **params: Any) -> Any:
    keepdims, method = params.get("keepdims", False), params.get("method", "linear")
    return torch.quantile(x, q, axis, keepdims, interpolation=method)


# ---- medians ------------------------------------------------------------------------------------

MEDIAN = [
    OpCase(
        gt.median,
        (ROWS,),
        np.median,
        ops=(*PARTED, "mean"),
        dtypes=REAL,
        at=[
            At(([3.0, 1.0, 2.0, 7.0],), ([0.5, 0.0, 0.5, 0.0],)),
            At(([1.0, 2.0, INF],), ([0.0, 1.0, 0.0],)),
            At(([1.0, np.nan, 0.0],), ([0.0, 1.0, 0.0],)),
        ],
        raises=[
            Raises((ROWS, 2), AxisError, "median: got axis 2"),
            Raises((ROWS,), UnsupportedError, "median: got out=", {"out": np.ones(())}),
        ],
    ),
    OpCase(
        gt.median,
        (ROWS, 1),
        np.median,
        ops=PARTED,
        label="odd",
        torch=lambda torch, x, axis: torch.median(x, axis).values,
    ),
    OpCase(gt.median, (EVEN, -1), np.median, ops=PARTED, label="even", dtypes=REAL),
    OpCase(gt.median, (draw(2, 3, 2), (0, 2)), np.median, {"keepdims": True}, PARTED, label="axes"),
    OpCase(gt.median, (np.array(1.5),), np.median, ops=PARTED, label="0-d"),
    OpCase(gt.median, (draw(0, 2), 1), np.median, ops=("mean",), label="empty"),
    OpCase(gt.median, (WITH_NAN, 1), np.median, ops=PARTED, label="nan", differences=False),
    OpCase(gt.median, (ROWS + 1j * EVEN[:, :1], 1), np.median, ops=PARTED, label="complex"),
    OpCase(
        gt.nanmedian,
        (WITH_NAN, 1),
        np.nanmedian,
        ops=("argsort", "gather", "scatter"),
        dtypes=(np.float64, np.float32, np.float16),
        differences=False,
        at=[
            At(([np.nan, 1.0, 3.0],), ([0.0, 0.5, 0.5],)),
            At(([np.nan, np.nan],), ([0.0, 0.0],)),
            At(([np.nan, 5.0, 2.0, 1.0],), ([0.0, 0.0, 1.0, 0.0],)),
        ],
        raises=[Raises((ROWS, 2), AxisError, "nanmedian: got axis 2")],
    ),
    OpCase(gt.nanmedian, (EVEN,), np.nanmedian, ops=("argsort",), dtypes=REAL, label="numbers"),
]

# ---- quantiles ----------------------------------------------------------------------------------

METHODS = (
    *("linear", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased"),
    *("normal_unbiased", "averaged_inverted_cdf", "midpoint"),
    *("inverted_cdf", "closest_observation", "lower", "higher", "nearest"),
)
AS_TORCH = ("linear", "lower", "higher", "midpoint", "nearest")


def with_method(method: str) -> list[OpCase]:
    """Both arguments tracked, and shares at the ends and at elements."""
    params = {"axis": -1, "method": method}
    return [
        OpCase(
            gt.quantile,
            (ROWS, SHARES),
            np.quantile,
            params,
            ops=("gather",),
            label=method,
            dtypes=(np.float64,),
            torch=torch_quantile if method in AS_TORCH else None,
        ),
        OpCase(
            gt.quantile,
            (EVEN, [0.0, 0.125, 1 / 3, 0.5, 0.625, 0.75, 1.0]),
            np.quantile,
            params,
            ops=("argpartition", "gather"),
            label=f"{method}-ends",
            dtypes=(np.float64, np.float32),
        ),
    ]


QUANTILE = [
    *(case for method in METHODS for case in with_method(method)),
    OpCase(
        gt.quantile,
        (ROWS, 0.3),
        np.quantile,
        ops=(*PARTED, "blend"),
        dtypes=REAL,
        at=[
            At(([1.0, 2.0, INF], 0.5), ([0.0, 1.0, 0.0], INF)),
            At(([1.0, INF, INF], 1.0), ([0.0, 0.0, 1.0], np.nan)),
            At(([1.0, 5.0, 2.0], 1.0), ([0.0, 1.0, 0.0], 6.0)),
            At(([1.0, 5.0, 2.0], 0.5), ([0.0, 0.0, 1.0], 6.0)),
            At(([1.0, 5.0, 1.0], 0.5), ([0.0, 0.0, 1.0], 8.0)),
            At(([1.0, np.nan, 0.0], 0.25), ([0.0, 1.0, 0.0], np.nan)),
        ],
        raises=[
            Raises((ROWS, 1.5), ArgumentError, "quantile: got q outside of the range"),
            Raises((ROWS, 0.5), ArgumentError, "got method='cubic'", {"method": "cubic"}),
            Raises((ROWS, 0.5), ArgumentError, "got weights= and method=", {"weights": ROWS}),
            Raises((ROWS, 0.5, 2), AxisError, "quantile: got axis 2"),
            Raises((ROWS + 1j, 0.5), DTypeError, "quantile: got complex128"),
            Raises((draw(0), 0.5), ShapeError, "quantile: got shape"),
            Raises((ROWS, np.full((1, 1, 1), 0.5)), ShapeError, "expected at most two axes"),
            Raises((ROWS, 0.5), UnsupportedError, "quantile: got out=", {"out": np.ones(())}),
        ],
    ),
    OpCase(gt.quantile, (ROWS, 1, 0), np.quantile, ops=PARTED, dtypes=REAL, label="whole"),
    OpCase(
        gt.quantile,
        (draw(2, 3, 2), np.array([[0.2, 0.7]]), (0, 2)),
        np.quantile,
        {"keepdims": True},
        ops=("argsort", "gather"),
        label="axes",
        dtypes=(np.float64,),
    ),
    OpCase(gt.quantile, (np.array(1.5), 0.3), np.quantile, ops=PARTED, label="0-d"),
    OpCase(
        gt.quantile, (WITH_NAN, 0.3, 1), np.quantile, ops=PARTED, label="nan", differences=False
    ),
    OpCase(
        gt.quantile,
        (ROWS, SHARES),
        np.quantile,
        {"axis": 1, "method": "inverted_cdf", "weights": np.array([0.0, 1.0, 2.0, 1.0, 3.0])},
        ops=("searchsorted", "gather"),
        label="weights",
        dtypes=(np.float64,),
    ),
    OpCase(
        gt.percentile,
        (ROWS, 30, 0),
        np.percentile,
        ops=PARTED,
        dtypes=REAL,
        raises=[Raises((ROWS, 101), ArgumentError, "percentile: .* expected q from 0 to 100")],
    ),
    OpCase(gt.percentile, (EVEN, 100 * SHARES), np.percentile, ops=("argsort",), label="array"),
    OpCase(
        gt.nanquantile,
        (WITH_NAN, 0.3, 1),
        np.nanquantile,
        ops=("argsort", "blend"),
        dtypes=(np.float64, np.float32),
        differences=False,
        at=[
            At(([np.nan, 1.0, 3.0], 0.25), ([0.0, 0.75, 0.25], 2.0)),
            At(([np.nan, np.nan], 0.25), ([0.0, 0.0], 0.0)),
            At(([np.nan, 1.0, 3.0], [0.0, 1.0]), ([0.0, 1.0, 1.0], [2.0, 2.0])),
        ],
    ),
    OpCase(gt.nanquantile, (EVEN, SHARES, 1), np.nanquantile, ops=("argsort",), label="numbers"),
    OpCase(
        gt.nanquantile,
        (EVEN, SHARES, 1),
        np.nanquantile,
        {"weights": EVEN + 3, "method": "inverted_cdf"},
        ops=("argsort",),
        label="weights",
        dtypes=(np.float64,),
    ),
    OpCase(gt.nanpercentile, (EVEN, 40.0, 1), np.nanpercentile, ops=("argsort",)),
    OpCase(
        blend,
        (draw(2), draw(2, seed=1), np.array([0.1, 0.9])),
        lambda x, y, share: x + share * (y - x),
        label="ends",
        at=[
            At(
                ([1.0, INF, INF], [INF, INF, 1.0], [0.0, 0.5, 1.0]),
                ([1.0, 0.5, 0.0], [0.0, 0.5, 1.0], [INF, np.nan, -INF]),
            ),
        ],
    ),
    OpCase(
        blend,
        (draw(3), draw(3, seed=1), np.array([0.2, 0.5, 0.9])),
        lambda x, y, share: x + share * (y - x),
        torch="lerp",
    ),
]

# ---- averages -----------------------------------------------------------------------------------

AVERAGE = [
    OpCase(gt.average, (ROWS,), np.average, ops=("mean",), dtypes=(*REAL, np.complex128)),
    OpCase(gt.average, (ROWS, 1, None, True), np.average, ops=("mean",), label="returned"),
    OpCase(
        gt.average,
        (ROWS, 1, draw(5, low=0.5)),
        np.average,
        ops=("sum", "multiply", "divide", "nonzero_total"),
        label="weights",
        raises=[
            Raises((ROWS[:, :2], 1, np.array([1.0, -1.0])), ArgumentError, "add up to 0"),
            Raises((ROWS, 0, draw(5)), ShapeError, r"average: got weights of shape \(5,\)"),
            Raises((ROWS, None, draw(5)), ShapeError, "average: got weights"),
            Raises((ROWS, 2), AxisError, "average: got axis 2"),
        ],
    ),
    OpCase(
        gt.average,
        (draw(2, 3, 2), (2, 0), draw(2, 2, low=0.5), True),
        np.average,
        {"keepdims": True},
        ops=("sum", "nonzero_total"),
        label="axes",
    ),
    OpCase(
        gt.average,
        (np.arange(3), None, np.array([1, 2, 2])),
        np.average,
        ops=("sum",),
        label="integers",
        differentiable=False,
    ),
]

# ---- covariances --------------------------------------------------------------------------------

COUNTS, SOME = np.array([1, 2, 1, 3, 2]), draw(5, low=0.5)


def torch_cov(torch: Any, x: Any, **params: Any) -> Any:
    fweights, bias = params.get("fweights"), params.get("bias", False)
    return torch.cov(
        x,
        correction=0 if bias else params.get("ddof", 1),
        fweights=None if fweights is None else torch.tensor(fweights),
    )


COVARIANCE = [
    OpCase(
        gt.ptp,
        (ROWS,),
        np.ptp,
        ops=("max", "min", "subtract"),
        dtypes=REAL,
        at=[At(([1.0, 3.0, 3.0],), ([-1.0, 0.5, 0.5],)), At(([2.0, 2.0],), ([0.0, 0.0],))],
        raises=[
            Raises((ROWS, 2), AxisError, "got axis 2"),
            Raises((draw(0),), ShapeError, "no identity"),
            Raises((ROWS,), UnsupportedError, "ptp: got out=", {"out": np.ones(())}),
        ],
    ),
    OpCase(gt.ptp, (ROWS, 1), np.ptp, {"keepdims": True}, ("max", "min"), label="axis"),
    OpCase(
        gt.cov,
        (ROWS,),
        np.cov,
        ops=("matmul",),
        dtypes=(np.float64, np.float32, np.int8, np.complex128),
        torch=torch_cov,
        rtol=64,
        raises=[
            Raises((draw(2, 2, 2),), ShapeError, "cov: got shape"),
            Raises((ROWS,), ArgumentError, "cov: got ddof=0.5", {"ddof": 0.5}),
            Raises((ROWS,), ShapeError, "cov: got fweights of shape", {"fweights": [1, 2]}),
            Raises((ROWS,), ArgumentError, "negative aweights", {"aweights": -SOME}),
            Raises((ROWS,), ArgumentError, "are no counts", {"fweights": SOME}),
        ],
    ),
    OpCase(gt.cov, (draw(5),), np.cov, {"bias": True}, ("matmul",), label="one", torch=torch_cov),
    OpCase(gt.cov, (draw(5), draw(5, seed=1)), np.cov, ops=("matmul",), label="two", rtol=64),
    OpCase(gt.cov, (draw(5, 2),), np.cov, {"rowvar": False}, ("matmul",), label="columns"),
    OpCase(
        gt.cov,
        (draw(1, 2),),
        lambda x, **params: np.zeros((2, 2)),  # NumPy before 2.2 took the row for one variable
        {"rowvar": False, "bias": True},
        ("matmul",),
        label="one-observation",
    ),
    OpCase(
        gt.cov,
        (ROWS,),
        np.cov,
        {"fweights": COUNTS},
        ("matmul",),
        label="counts",
        torch=torch_cov,
        rtol=64,
    ),
    OpCase(
        gt.cov,
        (ROWS, None, True, False, 1, COUNTS, SOME),
        np.cov,
        ops=("matmul",),
        label="weights",
        dtypes=(np.float64,),
        rtol=64,
    ),
    OpCase(
        gt.corrcoef,
        (draw(3, 5),),
        np.corrcoef,
        ops=("matmul", "clip"),
        torch="corrcoef",
        dtypes=(np.float64, np.float32, np.complex128),
        rtol=64,
    ),
    OpCase(gt.corrcoef, (draw(5),), np.corrcoef, ops=("matmul",), label="one"),
    OpCase(gt.corrcoef, (draw(5), draw(5, seed=1)), np.corrcoef, ops=("matmul",), label="two"),
]

CASES = [*MEDIAN, *QUANTILE, *AVERAGE, *COVARIANCE]
