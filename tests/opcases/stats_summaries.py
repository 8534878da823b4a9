"""Samples of summaries of observations: against `scipy.stats`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.stats

import our_scipy
from gradtape.core.deferrable import deferrable
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from opcases.case import At, OpCase, Raises, draw

inf = np.inf
ROWS, PAIRS = draw(2, 5, 3)
POSITIVE, WEIGHTS = np.exp(draw(2, 5, 3))
BAD_SCALE = "expected a number or 'normal'"


def row(name: str, *args: Any, ops: tuple[str, ...] = ("mean",), **kwargs: Any) -> OpCase:
    """A function of ours with SciPy's."""
    settings = {"dtypes": (np.float64,), "rtol": 2e4, "composed": True, **kwargs}
    return OpCase(
        getattr(our_scipy.stats, name), args, getattr(scipy.stats, name), ops=ops, **settings
    )


def pearsonr(x: Any, y: Any, **params: Any) -> Any:
    return tuple(our_scipy.stats.pearsonr(x, y, **params))


def theirs(x: Any, y: Any, **params: Any) -> Any:
    found = scipy.stats.pearsonr(x, y, **params)
    return found.statistic, found.pvalue


def correlation(x: Any, y: Any, **kwargs: Any) -> OpCase:
    return OpCase(
        pearsonr,
        (x, y),
        theirs,
        ops=("betainc",),
        dtypes=(np.float64,),
        rtol=2e4,
        composed=True,
        **kwargs,
    )


@deferrable  # an object asks for sizes when it is made
def density(dataset: Any, points: Any, bandwidth: Any, weights: Any) -> Any:
    return our_scipy.stats.gaussian_kde(dataset, bandwidth, weights).logpdf(points)


def their_density(dataset: Any, points: Any, bandwidth: Any, weights: Any) -> Any:
    return scipy.stats.gaussian_kde(dataset, float(bandwidth), weights).logpdf(points)


MOMENTS = [
    row("moment", ROWS, params={"order": 3}),
    row("moment", ROWS, params={"order": 2, "axis": None}, label="all"),
    row("moment", ROWS, params={"order": 3, "center": 0.3, "keepdims": True}, label="center"),
    row("moment", ROWS, params={"order": 1}, label="first", differences=False),
    row(
        "moment",
        ROWS,
        label="bad",
        raises=[
            Raises((ROWS, -1), ArgumentError, "got order=-1, expected a whole number"),
            Raises((ROWS, [1, 2]), ArgumentError, "call it once for each"),
        ],
    ),
    row("skew", ROWS, ops=("where",), at=[At(([1.0, 1.0, 1.0],), ([0.0, 0.0, 0.0],))]),
    row("skew", ROWS, ops=("where",), params={"axis": 1, "bias": False}, label="corrected"),
    row("kurtosis", ROWS, ops=("where",), params={"keepdims": True}),
    row(
        "kurtosis", ROWS, ops=("where",), params={"bias": False, "fisher": False}, label="corrected"
    ),
]

MEANS = [
    row(
        "gmean",
        POSITIVE,
        ops=("log",),
        at=[
            At(([0.0, 4.0],), ([inf, 0.0],)),
            At(([2.0, 8.0],), ([1.0, 0.25],)),
        ],
    ),
    row("gmean", POSITIVE, ops=("log",), params={"axis": 1, "weights": WEIGHTS}, label="weights"),
    row(
        "hmean",
        POSITIVE,
        ops=("power",),
        at=[
            At(([0.0, 4.0],), ([2.0, 0.0],)),
            At(([-1.0, 4.0],), ([0.0, 0.0],)),
            At(([1.0, 1.0],), ([0.5, 0.5],)),
        ],
    ),
    row("hmean", POSITIVE, ops=("power",), params={"axis": None, "keepdims": True}, label="all"),
    row(
        "pmean",
        POSITIVE,
        2.5,
        ops=("power",),
        params={"axis": 1},
        at=[
            At(([0.0, 4.0], 2), ([0.0, 0.5**0.5],), {"axis": 0}),
            At(([0.0, 0.0], 2), ([0.5, 0.5],), {"axis": 0}),
            At(([0.0, 4.0], -2), ([2**0.5, 0.0],), {"axis": 0}),
        ],
        raises=[
            Raises((POSITIVE, inf), ArgumentError, "got p=inf, expected a finite number"),
            Raises((POSITIVE, "2"), DTypeError, "expected a real number"),
        ],
    ),
    row("pmean", POSITIVE, -1.5, ops=("power",), params={"weights": WEIGHTS}, label="weights"),
    row("pmean", POSITIVE, 0, ops=("log",), label="geometric"),
]

SPREADS = [
    row("sem", ROWS, ops=("std",), at=[At(([1.0, 1.0],), ([0.0, 0.0],))]),
    row("sem", ROWS, ops=("std",), params={"axis": None, "ddof": 0}, label="all"),
    row("variation", POSITIVE, ops=("std",), params={"ddof": 1, "keepdims": True}),
    row(
        "iqr",
        ROWS,
        ops=("gather",),
        raises=[
            Raises((ROWS, 0, (25, 75), "raw"), ArgumentError, f"iqr: got scale='raw', {BAD_SCALE}"),
            Raises((ROWS, 0, (-1, 75)), ArgumentError, "q outside of the range"),
        ],
    ),
    row(
        "iqr",
        ROWS,
        ops=("gather",),
        params={"axis": 1, "rng": (90, 20), "scale": "normal", "interpolation": "midpoint"},
        label="scaled",
    ),
    row(
        "median_abs_deviation",
        ROWS,
        ops=("abs",),
        raises=[
            Raises(
                (ROWS, 0, None, "raw"), ArgumentError, f"deviation: got scale='raw', {BAD_SCALE}"
            ),
        ],
    ),
    row(
        "median_abs_deviation",
        ROWS,
        ops=("abs",),
        params={"axis": 1, "scale": "normal", "keepdims": True},
        label="scaled",
    ),
    row(
        "tmean",
        ROWS,
        (-0.5, 1.0),
        ops=("where",),
        at=[
            At(([1.0, 2.0, 5.0], (1, 2)), ([0.5, 0.5, 0.0],)),
            At(([1.0, 2.0, 5.0], (1, 2), (False, True)), ([0.0, 1.0, 0.0],)),
            At(([1.0, 2.0], (3, None)), ([0.0, 0.0],)),
        ],
    ),
    row("tmean", ROWS, ops=("where",), params={"axis": 0, "keepdims": True}, label="all"),
    row("tvar", ROWS, (None, 0.8), ops=("where",), params={"axis": None}),
    row("tvar", ROWS, ops=("var",), label="all"),
    row("tstd", ROWS, (-1.5, None), ops=("where",), params={"axis": None}),
    row("zscore", ROWS, ops=("std",), at=[At(([1.0, 1.0, 1.0],), ([0.0, 0.0, 0.0],))]),
    row("zscore", ROWS, ops=("std",), params={"axis": None, "ddof": 1}, label="all"),
    row("zmap", ROWS, PAIRS, ops=("std",), params={"axis": 1}),
    row("gzscore", 0.5 + POSITIVE, ops=("std", "log")),
]

OTHERS = [
    row(
        "entropy",
        POSITIVE,
        ops=("entr",),
        at=[At(([0.0, 1.0],), ([inf, 0.0],))],
        raises=[
            Raises(
                (POSITIVE, None, 0), ArgumentError, "got base=0, expected a number greater than 0"
            ),
        ],
    ),
    row("entropy", POSITIVE, WEIGHTS, 2.0, 1, ops=("rel_entr",), label="relative"),
    correlation(ROWS, PAIRS),
    correlation(ROWS[:, 0], PAIRS[:, 1], params={"alternative": "less"}, label="less"),
    correlation(ROWS.T, PAIRS.T, params={"axis": 1, "alternative": "greater"}, label="greater"),
    correlation(
        ROWS,
        PAIRS,
        params={"axis": None},
        label="all",
        raises=[
            Raises((ROWS, PAIRS), ArgumentError, "got alternative=", {"alternative": "both"}),
            Raises((ROWS[:1], PAIRS[:1]), ShapeError, "pearsonr: got 1 pairs"),
        ],
    ),
    row(
        "wasserstein_distance",
        ROWS[:, 0],
        PAIRS[:4, 1],
        ops=("sort",),
        raises=[
            Raises((ROWS, PAIRS), ShapeError, "wasserstein_distance: got"),
            Raises((ROWS[0], PAIRS[0], ROWS[0, :2]), ShapeError, "wasserstein_distance: "),
            Raises((ROWS[0], np.zeros(0)), ArgumentError, "got no v_values"),
        ],
    ),
    row(
        "wasserstein_distance",
        *(ROWS[:, 0], PAIRS[:4, 1], WEIGHTS[:, 0], WEIGHTS[:4, 1]),
        ops=("sort", "cumsum"),
        label="weights",
    ),
    row("boxcox_llf", np.array(0.7), POSITIVE, ops=("boxcox",)),
    row("boxcox_llf", np.array(-0.4), POSITIVE, ops=("boxcox",), params={"axis": 1}, label="rows"),
    row("yeojohnson_llf", np.array(0.7), ROWS, ops=("boxcox1p",)),
    row("yeojohnson_llf", np.array(2.5), ROWS[:, 0], ops=("boxcox1p",), label="negative"),
    OpCase(
        density,
        (ROWS[:, :2].T, PAIRS[:3, :2].T, np.array(0.9), WEIGHTS[:, 0]),
        their_density,
        ops=("cholesky",),
        dtypes=(np.float64,),
        rtol=2e4,
        composed=True,
        raises=[
            Raises((ROWS[:, 0], PAIRS[:2], 0.5, None), ShapeError, "points of dimension 2"),
            Raises((ROWS.T, PAIRS.T, "wide", None), ArgumentError, "got bw_method='wide'"),
            Raises((ROWS.T, PAIRS.T, 0.5, WEIGHTS[0]), ShapeError, "got weights of shape"),
            Raises((ROWS[0, :1], PAIRS[0], 0.5, None), ShapeError, "got 1 observations"),
        ],
    ),
]

CASES: list[OpCase] = [*MOMENTS, *MEANS, *SPREADS, *OTHERS]
