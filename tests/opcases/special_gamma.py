"""Samples of the gamma function and its kin, and of incomplete gamma and beta functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import our_scipy
from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.ops.special.incomplete_beta import beta_density
from gradtape.ops.special.incomplete_gamma import gamma_density
from gradtape.ops.special.student import t_density
from opcases.case import At, OpCase, Raises, draw, with_torch
from opcases.special import GAPS, POSITIVE, X, inf, reference, special

SHAPE, RATE = draw(2, 3, low=0.3, high=6.0), draw(2, 3, low=0.3, high=5.0, seed=1)
SHARE = draw(2, 3, low=0.1, high=0.9, seed=2)
COUNT, TRIALS = np.array([[0, 1, 2], [3, 0, 1]]), np.array([[4, 3, 5], [6, 2, 3]])


def gamma_pdf(a: Any, x: Any) -> Any:
    return np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))


def beta_pdf(a: Any, b: Any, x: Any) -> Any:
    return np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - scipy.special.betaln(a, b))


def t_pdf(df: Any, t: Any) -> Any:
    scale = scipy.special.gammaln((df + 1) / 2) - scipy.special.gammaln(df / 2)
    return np.exp(scale - (df + 1) / 2 * np.log1p(t * t / df)) / np.sqrt(np.pi * df)


def density(function: Any, pdf: Any, *args: Any, **kwargs: Any) -> OpCase:
    return OpCase(function, args, reference(pdf), elementwise=True, rtol=256, **kwargs)


GAMMA = [
    special("gamma", POSITIVE, torch=lambda torch, x: torch.exp(torch.special.gammaln(x))),
    special("gamma", GAPS, label="negative", at=[At((1.0,), (-np.euler_gamma,))]),
    special("rgamma", X, at=[At(([0.0, -1.0, -2.0],), ([1.0, -1.0, 2.0],))]),
    special("loggamma", POSITIVE),
    special("loggamma", POSITIVE + 1j, label="complex", elementwise=False),
    special("gamma", POSITIVE + 1j, label="complex", elementwise=False),
    special("gammasgn", np.concatenate([GAPS, GAPS + 5])),
    special("poch", SHAPE, RATE),
    special("beta", SHAPE, RATE),
    special("betaln", SHAPE, RATE, at=[At((1.0, 1.0), (-1.0, -1.0))]),
    special("binom", SHAPE + 5, RATE),
    OpCase(
        our_scipy.special.zeta,
        (np.array([[2, 3, 4]]), SHAPE),
        reference(scipy.special.zeta),
        ops=("hurwitz_zeta",),
        rtol=64,
    ),
    OpCase(
        our_scipy.special.zeta,
        (TRIALS,),
        scipy.special.zeta,
        ops=("riemann_zeta",),
        label="riemann",
        differentiable=False,
    ),
    OpCase(
        our_scipy.special.multigammaln,
        (SHAPE + 2, 3),
        reference(lambda a, d: scipy.special.multigammaln(a, int(d))),
        ops=("lgamma",),
        rtol=128,
        torch="special.multigammaln",
        raises=[Raises((SHAPE, 0), ArgumentError, "multigammaln: got d=0")],
    ),
    OpCase(
        our_scipy.special.factorial,
        (np.array([0.5, 2.5, 4.0, -1.0]),),
        reference(scipy.special.factorial),
        ops=("gamma",),
        rtol=64,
        raises=[Raises((SHAPE,), UnsupportedError, "factorial: got exact=", {"exact": True})],
    ),
    OpCase(
        our_scipy.special.comb,
        (SHAPE + 5, RATE),
        reference(scipy.special.comb),
        ops=("binom",),
        rtol=256,
        at=[At((2.0, 5.0), (0.0, 0.0))],
        raises=[Raises((SHAPE, RATE), UnsupportedError, "comb: got exact", {"exact": True})],
    ),
    OpCase(
        our_scipy.special.comb,
        (SHAPE + 5, RATE),
        reference(scipy.special.comb),
        params={"repetition": True},
        ops=("binom",),
        label="repetition",
        rtol=256,
    ),
    OpCase(
        our_scipy.special.perm,
        (SHAPE + 5, RATE),
        reference(scipy.special.perm),
        ops=("poch",),
        rtol=256,
    ),
]

INCOMPLETE = [
    special(
        "gammainc",
        SHAPE,
        RATE,
        rtol=64,
        ops=("gammainc", "gammainc_slope", "gamma_density"),
        at=[
            At((2.0, 0.0), (0.0, 0.0)),
            At((1.0, 0.0), (0.0, 1.0)),
            At((2.0, inf), (0.0, 0.0)),
            At((-1.0, 1.0), (np.nan, np.nan)),
        ],
        raises=[Raises((draw(2), draw(3)), ShapeError, "gammainc: got")],
    ),
    OpCase(
        our_scipy.special.gammainc,
        (2.5, RATE),
        reference(scipy.special.gammainc),
        label="number",
        rtol=64,
        torch=lambda torch, a, x: torch.special.gammainc(torch.full_like(x, a).detach(), x),
    ),
    special("gammaincc", SHAPE, RATE, rtol=64),
    special("gammaincinv", SHAPE, SHARE, rtol=64),
    special("gammainccinv", SHAPE, SHARE, rtol=64),
    density(gamma_density, gamma_pdf, SHAPE, RATE, at=[At(([3.0], [0.0]), ([0.0], [0.0]))]),
    special(
        "betainc",
        SHAPE,
        RATE,
        SHARE,
        rtol=128,
        ops=("betainc", "betainc_slope", "beta_density"),
        at=[
            At((2.0, 2.0, 0.0), (0.0, 0.0, 0.0)),
            At((2.0, 2.0, 1.0), (0.0, 0.0, 0.0)),
            At((1.0, 3.0, 0.0), (0.0, 0.0, 3.0)),
        ],
        raises=[Raises((draw(2), draw(3), draw(2)), ShapeError, "betainc: got")],
    ),
    # Derivatives in parameters are quadratures; other forms of arguments are tried with betainc.
    special("betaincc", SHAPE, RATE, SHARE, rtol=128, elementwise=False),
    special("betaincinv", SHAPE, RATE, SHARE, rtol=128, elementwise=False),
    special("betainccinv", SHAPE, RATE, SHARE, rtol=128, elementwise=False),
    density(
        beta_density,
        beta_pdf,
        SHAPE,
        RATE,
        SHARE,
        at=[At(([3.0], [3.0], [0.0]), ([0.0], [0.0], [0.0]))],
    ),
    special(
        "stdtr",
        SHAPE,
        X,
        rtol=64,
        ops=("stdtr", "stdtr_by_df", "stdtr_slope", "t_density"),
        at=[At((1.0, 0.0), (0.0, 1 / np.pi))],
    ),
    special("stdtrit", SHAPE, SHARE, rtol=64, elementwise=False),
    density(t_density, t_pdf, SHAPE, X),
]

DOUBLE = (np.float64,)  # products are rounded to single precision otherwise

COMPOSED = [
    special("gdtr", RATE, SHAPE, RATE, ops=("gammainc",), rtol=64, dtypes=DOUBLE),
    special("gdtrc", RATE, SHAPE, RATE, ops=("gammaincc",), rtol=64, dtypes=DOUBLE),
    special("chdtr", SHAPE, RATE, ops=("gammainc",), rtol=64),
    special("chdtrc", SHAPE, RATE, ops=("gammaincc",), rtol=64),
    special("chdtri", SHAPE, SHARE, ops=("gammainccinv",), rtol=64),
    special("pdtr", COUNT, RATE, ops=("gammaincc",), rtol=64),
    special("pdtrc", COUNT, RATE, ops=("gammainc",), rtol=64),
    special(
        "fdtr", SHAPE, RATE, RATE, ops=("betainc",), rtol=128, dtypes=DOUBLE, elementwise=False
    ),
    special(
        "fdtrc", SHAPE, RATE, RATE, ops=("betainc",), rtol=128, dtypes=DOUBLE, elementwise=False
    ),
    special(
        "fdtri", SHAPE, RATE, SHARE, ops=("betaincinv",), rtol=512, dtypes=DOUBLE, elementwise=False
    ),
    special("bdtr", COUNT, TRIALS, SHARE, ops=("betaincc",), rtol=64),
    special("bdtrc", COUNT, TRIALS, SHARE, ops=("betainc",), rtol=64),
    special("bdtri", COUNT, TRIALS, SHARE, ops=("betainccinv",), rtol=64),
    special("nbdtri", COUNT, TRIALS, SHARE, ops=("betaincinv",), rtol=64),
    special("pdtri", COUNT, SHARE, ops=("gammainccinv",), rtol=64),
    special("gdtrix", RATE, SHAPE, SHARE, ops=("gammaincinv",), rtol=64),
    special("nbdtr", COUNT, TRIALS, SHARE, ops=("betainc",), rtol=64),
    special("nbdtrc", COUNT, TRIALS, SHARE, ops=("betaincc",), rtol=64),
]


def torch_value(name: str) -> Any:
    """PyTorch's, which has no gradient, or not in all arguments."""
    return lambda torch, *args: getattr(torch.special, name)(*(x.detach() for x in args))


TORCH = {
    "zeta": torch_value("zeta"),
    "zeta-riemann": lambda torch, x: torch.special.zeta(x.double(), torch.ones(())),
    "gammaincc": torch_value("gammaincc"),
}

CASES = with_torch(TORCH, [*GAMMA, *INCOMPLETE, *COMPOSED])

NOT_NATIVE = dict.fromkeys(
    (
        *("gamma", "rgamma", "gammasgn", "poch", "beta", "betaln", "binom"),
        *("hurwitz_zeta", "riemann_zeta", "gammainc", "gammaincc", "gammaincinv", "gammainccinv"),
        *("gammainc_slope", "gamma_density", "betainc", "betaincc", "betaincinv", "betainccinv"),
        *("betainc_slope", "beta_density", "stdtr", "stdtrit", "stdtr_slope", "t_density"),
        "stdtr_by_df",
    ),
    "no such elementary function",
)
