"""Samples of distributions: densities, tails and quantiles against `scipy.stats`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.stats

import gradtape as gt
import our_scipy
from gradtape.errors import ArgumentError, LinAlgError, ShapeError
from opcases.case import At, OpCase, Raises, draw

inf, nan = np.inf, np.nan
DOUBLE = (np.float64,)
ANYWHERE = np.array([-1.7, 0.4, 2.3])
POSITIVE, UNIT = np.array([0.4, 1.1, 2.3]), np.array([0.2, 0.45, 0.9])
SHAPE, OTHER = np.array([0.7, 2.5, 4.0]), np.array([3.0, 1.5, 0.8])
LOC, SCALE = np.array([0.1, -0.2, 0.05]), np.array([0.9, 1.5, 1.2])


def each(methods: Sequence[str], name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Functions of several methods at once: gradtape's, and that of SciPy."""

    def ours(*args: Any, **params: Any) -> Any:
        return [
            getattr(getattr(our_scipy.stats, name), method)(*args, **params) for method in methods
        ]

    def theirs(*args: Any, **params: Any) -> Any:
        return [getattr(getattr(scipy.stats, name), method)(*args, **params) for method in methods]

    ours.__name__ = f"{name}_{'_'.join(methods)}"
    return ours, theirs


def rows(
    name: str,
    x: Any,
    *shapes: Any,
    tails: Sequence[str] = ("cdf", "sf"),
    at: Any = (),
    **kwargs: Any,
) -> list[OpCase]:
    """The density, the tails and the quantiles of one distribution."""
    quantiles = kwargs.pop("quantiles", UNIT)
    place = x * SCALE + LOC
    args = (*shapes, LOC, SCALE)
    plans = [(("logpdf",), place, at)]
    if tails:
        plans += [((*tails, "logcdf", "logsf"), place, ()), (("ppf", "isf"), quantiles, ())]
    return [
        OpCase(
            *(each(methods, name)[0], (first, *args), each(methods, name)[1]),
            ops=("where",),
            dtypes=DOUBLE,
            rtol=2e4,
            at=points,
            **kwargs,
        )
        for methods, first, points in plans
    ]


def counts(name: str, k: Any, *shapes: Any, at: Any = (), raises: Any = ()) -> list[OpCase]:
    """The probabilities and the tails of a discrete distribution."""
    plans = [(("logpmf", "pmf"), at, raises), (("cdf", "sf"), (), ())]
    return [
        OpCase(
            *(each(methods, name)[0], (k, *shapes), each(methods, name)[1]),
            ops=("where",),
            dtypes=DOUBLE,
            rtol=2e4,
            at=points,
            raises=bad,
        )
        for methods, points, bad in plans
    ]


CONTINUOUS = [
    *rows("norm", ANYWHERE, at=[At((0.0, 0.0, 1.0), (0.0, 0.0, -1.0))]),
    *rows("uniform", UNIT, at=[At((2.0, 0.0, 1.0), (0.0, 0.0, 0.0))]),
    *rows(
        "expon",
        POSITIVE,
        at=[At((-1.0, 0.0, 1.0), (0.0, 0.0, 0.0)), At((0.0, 0.0, 1.0), (-1.0, 1.0, -1.0))],
    ),
    *rows("cauchy", ANYWHERE),
    *rows("laplace", ANYWHERE),
    *rows("logistic", ANYWHERE),
    *rows("gumbel_r", ANYWHERE),
    *rows("gumbel_l", ANYWHERE),
    *rows("halfnorm", POSITIVE),
    *rows("rayleigh", POSITIVE),
    *rows(
        "gamma",
        POSITIVE,
        SHAPE,
        at=[
            At((-1.0, 2.0, 0.0, 1.0), (0.0, 0.0, 0.0, 0.0)),
            At((0.0, 1.0, 0.0, 1.0), (-1.0, np.euler_gamma, 1.0, -1.0)),
            At((1.0, 1.0, 0.0, -1.0), (0.0, 0.0, 0.0, 0.0)),  # no distribution: NaN, not tracked
        ],
    ),
    *rows("chi2", POSITIVE, SHAPE),
    *rows("invgamma", POSITIVE, SHAPE),
    *rows("weibull_min", POSITIVE, SHAPE),
    *rows("beta", UNIT, SHAPE, OTHER, at=[At((2.0, 2.0, 2.0, 0.0, 1.0), (0.0,) * 5)]),
    *rows("t", ANYWHERE, SHAPE),
    *rows("f", POSITIVE, SHAPE + 2, OTHER + 3, quantiles=0.7 * UNIT),
    *rows("lognorm", POSITIVE, SHAPE, at=[At((-1.0, 1.0, 0.0, 1.0), (0.0,) * 4)]),
    *rows("pareto", 1 + POSITIVE, SHAPE, at=[At((0.5, 1.0, 0.0, 1.0), (0.0,) * 4)]),
    *rows("vonmises", UNIT, SHAPE, tails=()),
    *rows("halfcauchy", POSITIVE),
    *rows("fisk", POSITIVE, SHAPE, at=[At((-1.0, 2.0, 0.0, 1.0), (0.0,) * 4)]),
    *rows(
        "genpareto",
        POSITIVE,
        np.array([-0.2, 0.0, 0.7]),
        at=[
            At((6.0, -0.2, 0.0, 1.0), (0.0,) * 4),
            At((1.0, 0.0, 0.0, 1.0), (-1.0, -0.5, 1.0, 0.0)),
        ],
    ),
    *rows(
        "genextreme",
        ANYWHERE,
        np.array([-0.2, 0.0, 0.3]),
        at=[At((6.0, 0.2, 0.0, 1.0), (0.0,) * 4), At((-6.0, -0.2, 0.0, 1.0), (0.0,) * 4)],
    ),
    *rows("skewnorm", ANYWHERE, SHAPE - 2, tails=()),
    *rows("invgauss", POSITIVE, SHAPE, tails=(), at=[At((-1.0, 2.0, 0.0, 1.0), (0.0,) * 4)]),
]


def truncated(*methods: str) -> OpCase:
    ours, theirs = each(methods, "truncnorm")
    args = (np.array([0.3, 1.5, 6.2]), np.array([-1.0, 0.5, 6.0]), np.array([2.0, 3.0, 7.0]))
    return OpCase(ours, args, theirs, ops=("log_ndtr",), dtypes=DOUBLE, rtol=2e5)


def truncated_quantiles() -> OpCase:
    ours, theirs = each(("ppf", "isf"), "truncnorm")
    args = (UNIT, np.array([-1.0, 0.5, 6.0]), np.array([2.0, 3.0, 7.0]))
    return OpCase(ours, args, theirs, ops=("ndtri_exp",), dtypes=DOUBLE, rtol=2e5)


def moments(name: str, *args: Any, methods: Sequence[str] = ("mean", "var", "entropy")) -> OpCase:
    """What the parameters alone decide."""
    ours, theirs = each(methods, name)
    return OpCase(ours, args, theirs, ops=("where",), dtypes=DOUBLE, rtol=2e4)


ABOVE = SHAPE + 4.5
MOMENTS = [
    moments("norm", LOC, SCALE),
    moments("gamma", 10 * SHAPE, LOC, SCALE),
    moments("weibull_min", SHAPE, LOC, SCALE),
    moments("lognorm", 0.2 * SHAPE, LOC, SCALE),
    moments("fisk", 2 + SHAPE, LOC, SCALE),
    moments("genpareto", np.array([-0.2, 0.0, 0.3]), LOC, SCALE),
    moments("genextreme", SHAPE - 2, LOC, SCALE, methods=("entropy",)),
    moments("skewnorm", SHAPE - 2, LOC, SCALE, methods=("mean", "var")),
    moments("invgauss", SHAPE, LOC, SCALE, methods=("mean", "var")),
    moments("beta", SHAPE, OTHER, LOC, SCALE),
    *(moments(name, ABOVE, LOC, SCALE) for name in ("invgamma", "pareto", "t")),
    moments("f", SHAPE, ABOVE, LOC, SCALE),
    moments("bernoulli", UNIT, LOC),
    moments("geom", UNIT, LOC),
    moments("nbinom", SHAPE, UNIT, LOC, methods=("mean", "std")),
]

DISCRETE = [
    *counts(
        "bernoulli",
        np.array([0, 1, 1]),
        UNIT,
        at=[
            At((1, 0.25), (4.0 + 1.0,)),
            At((0, 0.0), (-2.0,)),
            At((1, 1.0), (2.0,)),
            At((2, 0.5), (0.0,)),
        ],
    ),
    *counts("binom", np.array([0, 2, 3]), np.array([4, 4, 4]), UNIT, at=[At((5, 4, 0.5), (0.0,))]),
    *counts(
        "poisson",
        np.array([0, 2, 5]),
        SHAPE,
        at=[At((0, 0.0), (-2.0,)), At((-1, 2.0), (0.0,))],
        raises=[Raises((np.array([1]),), ArgumentError, "poisson: logpmf got 0 parameters")],
    ),
    *counts("geom", np.array([1, 2, 4]), UNIT, at=[At((0, 0.5), (0.0,))]),
    *counts("nbinom", np.array([0, 2, 3]), SHAPE, UNIT),
]

ROOT = np.array([[1.2, 0.0], [0.4, 0.9]])


def normal(x: Any, mean: Any, root: Any) -> Any:
    """With a covariance that stays symmetric."""
    return our_scipy.stats.multivariate_normal.logpdf(x, mean, gt.matmul(root, gt.transpose(root)))


def normal_density(x: Any, mean: Any, root: Any) -> Any:
    return scipy.stats.multivariate_normal.logpdf(x, mean, root @ root.T)


MULTIVARIATE = [
    OpCase(
        normal,
        (draw(3, 2), draw(2), ROOT),
        normal_density,
        ops=("cholesky",),
        dtypes=DOUBLE,
        rtol=1024,
        batched=False,
    ),
    OpCase(
        our_scipy.stats.multivariate_normal.logpdf,
        (draw(4),),
        scipy.stats.multivariate_normal.logpdf,
        params={"mean": 0.5, "cov": 2.0},
        ops=("subtract",),
        label="one-dimension",
        dtypes=DOUBLE,
        rtol=1024,
        batched=False,
        raises=[
            Raises((draw(3), draw(2)), ShapeError, "multivariate_normal: got x of shape"),
            Raises((draw(2), draw(2), -np.eye(2)), LinAlgError, "cholesky"),
        ],
    ),
    OpCase(
        lambda x, a: our_scipy.stats.dirichlet.logpdf(gt.softmax(x), a),
        (draw(3), SHAPE),
        lambda x, a: scipy.stats.dirichlet.logpdf(np.exp(x) / np.exp(x).sum(), a),
        ops=("xlogy",),
        label="dirichlet",
        dtypes=DOUBLE,
        rtol=1024,
        raises=[Raises((draw(5), SHAPE), ShapeError, "dirichlet: got x of shape")],
    ),
    OpCase(
        lambda p: our_scipy.stats.multinomial.logpmf(
            np.array([[1, 2, 0], [1, 1, 1], [3, 0, 1]]), 3, p
        ),
        (np.array([0.2, 0.3, 0.5]),),
        lambda p: scipy.stats.multinomial.logpmf([[1, 2, 0], [1, 1, 1], [3, 0, 1]], 3, p),
        ops=("xlogy",),
        label="multinomial",
        dtypes=DOUBLE,
        rtol=1024,
        differences=False,  # the last row is impossible: -inf
        at=[At(([0.2, 0.3, 0.5],), ([10.0, 10.0, 2.0],))],
    ),
]

ALL = [
    *CONTINUOUS,
    truncated("logpdf"),
    truncated("cdf", "sf"),
    truncated_quantiles(),
    *MOMENTS,
    *DISCRETE,
    *MULTIVARIATE,
]
CASES: list[OpCase] = [replace(case, composed=True) for case in ALL]
