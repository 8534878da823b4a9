"""Samples of special functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import gradtape as gt
import our_scipy
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from opcases.case import At, OpCase, Raises, draw

inf, nan = np.inf, np.nan
X, POSITIVE = draw(2, 3), draw(2, 3, low=0.3, high=4.0)
GAPS = np.array([-0.5, -1.3, -2.6])  # between the poles of the gamma function
REAL = (np.float64, np.float32)


def case(name: str, ref: Any, *args: Any, **kwargs: Any) -> OpCase:
    return OpCase(getattr(gt, name), args, ref, elementwise=True, **kwargs)


def polygamma_32(n: int, x: Any) -> Any:
    return scipy.special.polygamma(n, x).astype(x.dtype)


def reference(function: Any) -> Any:
    """A function of SciPy in double precision, with the dtypes of NumPy's functions."""

    def computed(*args: Any, **params: Any) -> Any:
        dtype = np.result_type(*args)
        if dtype.kind == "c":
            return function(*args, **params)
        wide = (
            arg.astype(np.float64) if isinstance(arg, np.ndarray) and arg.dtype.kind == "f" else arg
            for arg in args
        )
        out = function(*wide, **params)
        if dtype != np.float32:
            return out
        narrow = {np.float64: np.float32, np.complex128: np.complex64}
        if isinstance(out, tuple):
            return tuple(np.asarray(part).astype(narrow[part.dtype.type]) for part in out)
        return np.asarray(out).astype(narrow[np.asarray(out).dtype.type])

    return computed


def special(name: str, *args: Any, **kwargs: Any) -> OpCase:
    """A function of `gt.scipy.special` compared with SciPy's of the same name."""
    ref = reference(getattr(scipy.special, name))
    elementwise = kwargs.pop("elementwise", all(isinstance(arg, np.ndarray) for arg in args))
    kwargs.setdefault("rtol", 32)
    return OpCase(getattr(our_scipy.special, name), args, ref, elementwise=elementwise, **kwargs)


xlogy = reference(scipy.special.xlogy)


def slope_of_xlogy(x: Any, y: Any) -> Any:
    """The sum of both derivatives, to see the second ones at special points."""
    by_x, by_y = gt.grad(lambda x, y: gt.sum(gt.xlogy(x, y)), (0, 1))(x, y)
    return by_x + by_y


def through_scipy(ufunc: Any, op: str, x: Any) -> OpCase:
    """A function of SciPy, called on tensors."""
    return OpCase(ufunc, (x,), ufunc, ops=(op,), label="scipy", rtol=64)


SHARES = draw(2, 3, low=0.1, high=0.9)

NORMAL = [
    special("erfcx", X, torch="special.erfcx", at=[At((0.0,), (-2 / np.sqrt(np.pi),))]),
    special("erfcx", X + 9, label="far"),
    special("erfi", X, at=[At((0.0,), (2 / np.sqrt(np.pi),))]),
    special("dawsn", X, at=[At((0.0,), (1.0,)), At((inf,), (0.0,))]),
    special("dawsn", 9 + X, label="far"),
    special("wofz", X, elementwise=False),
    special("wofz", X + 1j * POSITIVE, label="complex", elementwise=False),
    special("voigt_profile", X, POSITIVE, SHARES, ops=("voigt",), elementwise=False, rtol=128),
    special("erfcinv", 2 * SHARES, at=[At((0.0,), (-inf,))]),
    special("ndtri", SHARES, torch="special.ndtri", at=[At((0.5,), (np.sqrt(2 * np.pi),))]),
    special(
        "log_ndtr",
        3 * X,
        torch="special.log_ndtr",
        at=[At((0.0,), (np.sqrt(2 / np.pi),)), At((inf,), (0.0,))],
    ),
    special("log_ndtr", 9 * X, label="tail", at=[At((-1e10,), (1e10,))]),
    special("ndtri_exp", -POSITIVE, rtol=64),
    special("nrdtrimn", SHARES, POSITIVE, X, ops=("ndtri",), rtol=64),
    special("nrdtrisd", X, SHARES / 3, -POSITIVE, ops=("ndtri",), rtol=64),
    special("owens_t", X, POSITIVE, at=[At((0.0, 1.0), (0.0, 1 / (4 * np.pi)))]),
]

ENTROPY = [
    special(
        "xlog1py",
        X,
        POSITIVE,
        torch="special.xlog1py",
        at=[At((0.0, 1.0), (np.log(2.0), 0.0))],
    ),
    special("xlog1py", X, POSITIVE, label="ends", at=[At((0.0, -1.0), (0.0, 0.0))]),
    special("entr", POSITIVE, torch="special.entr", at=[At((1.0,), (-1.0,)), At((0.0,), (inf,))]),
    special("rel_entr", POSITIVE, SHARES, at=[At((1.0, 1.0), (1.0, -1.0))]),
    special("kl_div", POSITIVE, SHARES, label="special", at=[At((1.0, 1.0), (0.0, 0.0))]),
]

ELEMENTARY = [
    special("logit", SHARES, torch="special.logit", at=[At((0.5,), (4.0,)), At((0.0,), (inf,))]),
    special("exprel", X, at=[At((0.0,), (0.5,))]),
    special("exprel", 8 * X, label="large"),
    special("boxcox", POSITIVE, X, at=[At((np.e, 0.0), (1 / np.e, 0.5))]),
    special("boxcox1p", POSITIVE, X, at=[At((0.0, 0.0), (1.0, 0.0))]),
    special("inv_boxcox", POSITIVE, SHARES, rtol=64, at=[At((1.0, 0.0), (np.e, -np.e / 2))]),
    special("inv_boxcox1p", POSITIVE, SHARES, rtol=64),
    special("powm1", POSITIVE, X, rtol=64),
    special("cosm1", X, at=[At((0.0,), (0.0,))]),
    special("radian", X, POSITIVE, SHARES, ops=("add",), rtol=64),
    special("sindg", 40 * X, at=[At((0.0,), (np.pi / 180,))], rtol=128),
    special("cosdg", 40 * X, at=[At((90.0,), (-np.pi / 180,))], rtol=128),
    special("tandg", 40 * X, rtol=128),
    special("cotdg", 40 * POSITIVE + 5, rtol=128),
    special("huber", SHARES, X, at=[At((1.0, 2.0), (1.0, 1.0)), At((1.0, -0.5), (0.0, -0.5))]),
    special("pseudo_huber", SHARES, X, at=[At((1.0, 0.0), (0.0, 0.0))]),
]

CASES: list[OpCase] = [
    case(
        "erf",
        scipy.special.erf,
        X,
        at=[At((0.0,), (2 / np.sqrt(np.pi),)), At((inf,), (0.0,)), At((-1e200,), (0.0,))],
        torch="special.erf",
    ),
    case("erf", scipy.special.erf, np.arange(3), label="whole", differentiable=False),
    case("erfc", scipy.special.erfc, X, at=[At((inf,), (0.0,))], torch="special.erfc"),
    case(
        "erfinv",
        scipy.special.erfinv,
        draw(2, 3, low=-0.9, high=0.9),
        at=[At((1.0,), (inf,))],
        torch="special.erfinv",
    ),
    case("ndtr", scipy.special.ndtr, X, at=[At((-inf,), (0.0,))], torch="special.ndtr"),
    case(
        "lgamma",
        scipy.special.gammaln,
        POSITIVE,
        at=[At((1.0,), (-np.euler_gamma,)), At((0.0,), (-inf,)), At((inf,), (inf,))],
        torch="special.gammaln",
    ),
    case("lgamma", scipy.special.gammaln, GAPS, label="negative", torch="lgamma"),
    case(
        "digamma",
        scipy.special.digamma,
        POSITIVE,
        at=[At((1.0,), (np.pi**2 / 6,))],
        # The gradient of PyTorch's, its trigamma, is exact to 5e-10 only.
        torch=lambda torch, x: torch.digamma(x.detach()),
    ),
    OpCase(
        gt.digamma,
        (10 + POSITIVE,),
        reference(scipy.special.digamma),
        label="far",
        torch="special.digamma",
    ),
    case("digamma", scipy.special.digamma, GAPS, label="negative", rtol=64),
    *(
        OpCase(
            gt.polygamma,
            (n, POSITIVE),
            polygamma_32,
            label=f"{n}",
            ops=(op,),
            rtol=64,
            torch="special.polygamma" if n > 1 else None,
        )
        for n, op in ((0, "digamma"), (1, "polygamma"), (2, "polygamma"), (5, "polygamma"))
    ),
    OpCase(
        gt.polygamma,
        (1, GAPS),
        polygamma_32,
        label="negative",
        rtol=64,
        raises=[
            Raises((-1, X), ArgumentError, "polygamma: got n=-1"),
            Raises((1, np.array(["a"])), DTypeError, "polygamma: got <U1"),
            Raises((1.0, X), ArgumentError, "polygamma: got n=1.0"),
        ],
    ),
    case(
        "xlogy",
        xlogy,
        X,
        POSITIVE,
        at=[
            At((0.0, 0.0), (0.0, 0.0), unlike_torch="nan from 0/0"),
            At((0.0, 2.0), (np.log(2.0), 0.0)),
            At((0.0, -1.0), (0.0, 0.0)),
            At((0.0, nan), (nan, nan)),
            At((0.0, 2), (np.log(2.0),)),
            At((0.0, 0), (0.0,)),
            At((np.array([0.0, 0.0]), np.array([2, 0])), (np.array([np.log(2.0), 0.0]),)),
            At((1.0, 0.0), (-inf, inf)),
            At((2.0, 1.0), (0.0, 2.0)),
        ],
        raises=[Raises((draw(2), draw(3)), ShapeError, "xlogy: got")],
        torch="special.xlogy",
    ),
    OpCase(
        slope_of_xlogy,
        (X, POSITIVE),
        lambda x, y: x / y + np.log(y),
        ops=("xlogy",),
        label="second-order",
        at=[At((0.0, 2.0), (0.5, 0.5)), At((0.0, 0.0), (0.0, 0.0))],
    ),
    *NORMAL,
    *ENTROPY,
    *ELEMENTARY,
    through_scipy(scipy.special.erf, "erf", X),
    through_scipy(scipy.special.gammaln, "lgamma", POSITIVE),
    through_scipy(scipy.special.psi, "digamma", POSITIVE),
    through_scipy(scipy.special.expit, "sigmoid", X),
]

NOT_NATIVE = dict.fromkeys(
    (
        *("erfi", "dawsn", "wofz", "voigt", "ndtri_exp", "owens_t", "exprel", "boxcox", "boxcox1p"),
        *("inv_boxcox", "inv_boxcox1p", "powm1", "cosm1", "sindg", "cosdg", "tandg", "cotdg"),
    ),
    "no such elementary function",
)
NOT_NATIVE |= dict.fromkeys(
    ("kl_div", "pseudo_huber"), "a difference that SciPy computes in its own way"
)
ULPS = {"xlogy": 4, "ndtr": 8, "entr": 2, "logit": 4}
ULPS |= {"xlog1py": 4, "rel_entr": 4, "huber": 2}
ULPS |= {"lgamma": 8, "loggamma": 8, "digamma": 8, "polygamma": 8}
ULPS |= {"erfcx": 8, "erfinv": 8, "erfcinv": 8, "ndtri": 8, "log_ndtr": 8}
