"""Samples of integrals with names, elliptic and hypergeometric functions, polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

import our_scipy
from gradtape.errors import ArgumentError
from gradtape.ops.special.carlson import carlson
from gradtape.ops.special.elliptic import _moment
from opcases.case import At, OpCase, Raises, draw, with_torch
from opcases.special import POSITIVE, SHARES, X, inf, reference, special

DEGREES = np.array([[0, 1, 2], [3, 1, 5]])
PHASES = np.array([0.3, 1.2, 2.0, -4.0])
PARAMETERS = np.array([0.05, 0.3, 0.7, -2.0])
COMPLEX = X + 1j * POSITIVE


def polynomial(name: str, *args: Any, **kwargs: Any) -> OpCase:
    name = f"eval_{name}"
    return special(name, DEGREES, *args, rtol=256, **kwargs)


INTEGRALS = [
    *(special(name, POSITIVE, elementwise=False) for name in ("sici", "shichi", "fresnel")),
    *(special(name, COMPLEX, label="complex") for name in ("sici", "shichi", "fresnel")),
    *(special(name, POSITIVE, rtol=128) for name in ("expi", "exp1")),
    special("expi", -POSITIVE, label="negative", rtol=128),
    special("exp1", COMPLEX, label="complex", rtol=128, elementwise=False),
    special("expn", DEGREES, POSITIVE, rtol=64),
    special("spence", POSITIVE, rtol=64, at=[At((1.0,), (-1.0,)), At((2.0,), (-np.log(2.0),))]),
    special("spence", COMPLEX, label="complex", rtol=128, elementwise=False),
]

ELLIPTIC = [
    special("ellipk", SHARES, at=[At((0.0,), (np.pi / 8,))]),
    special("ellipkm1", SHARES, at=[At((1.0,), (-np.pi / 8,))]),
    special("ellipe", SHARES, at=[At((0.0,), (-np.pi / 8,))]),
    special("ellipkinc", PHASES, PARAMETERS, rtol=128, at=[At((0.0, 0.5), (1.0, 0.0))]),
    special("ellipeinc", PHASES, PARAMETERS, rtol=128, at=[At((0.0, 0.5), (1.0, 0.0))]),
    special("ellipj", PHASES[:3], PARAMETERS[:3], elementwise=False, rtol=256, second_order=False),
    OpCase(
        _moment,
        (PHASES, PARAMETERS),
        reference(
            lambda phi, m, powers: (
                (scipy.special.ellipkinc(phi, m) - scipy.special.ellipeinc(phi, m)) / m
            )
        ),
        params={"powers": (1, 0)},
        ops=("elliptic_moment",),
        label="elliptic-moment",
        rtol=1024,
    ),
    special("agm", SHARES, POSITIVE, ops=("ellipkm1",), rtol=64, at=[At((2.0, 2.0), (0.5, 0.5))]),
    special(
        "elliprd",
        SHARES,
        POSITIVE,
        POSITIVE + 4,
        rtol=64,
        at=[At((1.0, 1.0, 1.0), (-0.3, -0.3, -0.9))],
    ),
    special("elliprf", SHARES, POSITIVE, POSITIVE + 4, rtol=64),
    special("elliprg", SHARES, POSITIVE, POSITIVE + 4, rtol=64),
    special("elliprj", SHARES, POSITIVE, POSITIVE + 4, SHARES + 1, rtol=64, elementwise=False),
    special("elliprc", SHARES, POSITIVE, rtol=64, at=[At((1.0, 1.0), (-1 / 6, -1 / 3))]),
    special("elliprc", SHARES, -POSITIVE, label="negative", rtol=64),
    OpCase(
        carlson,
        (SHARES, POSITIVE, POSITIVE + 4, SHARES + 1),
        reference(lambda x, y, z, p, exponents: scipy.special.elliprj(x, y, z, p) / 1.5),
        params={"exponents": (0.5, 0.5, 0.5, 1.0)},
        ops=("carlson",),
        label="carlson",
        rtol=128,
    ),
]

HYPERGEOMETRIC = [
    special("hyp0f1", 1.5, X, rtol=128),
    special("hyp1f1", 0.5, 1.5, X, rtol=128),
    special("hyperu", 0.5, 1.5, POSITIVE, rtol=256),
    special("hyp2f1", 0.5, 0.7, 1.5, SHARES, rtol=128),
    special("wright_bessel", 0.5, 1.0, POSITIVE, rtol=128),
    special("log_wright_bessel", 0.5, 1.0, POSITIVE, rtol=128),
    special("hyp2f1", 0.5, 0.7, 1.5, 0.3 * COMPLEX, label="complex", rtol=128),
    OpCase(
        our_scipy.special.lambertw,
        (POSITIVE,),
        reference(scipy.special.lambertw),
        rtol=64,
        raises=[Raises((X,), ArgumentError, "lambertw: got k=0.5", {"k": 0.5})],
    ),
    OpCase(
        our_scipy.special.lambertw,
        (COMPLEX,),
        scipy.special.lambertw,
        params={"k": 1},
        label="branch",
        rtol=64,
    ),
    special("wrightomega", X, rtol=64),
    special("wrightomega", COMPLEX, label="complex", rtol=64, elementwise=False),
]

BELOW = (0.5, -0.5, -2)
POLYNOMIALS = [
    *(polynomial(name, X) for name in ("legendre", "chebyt", "chebyu", "hermite", "hermitenorm")),
    polynomial("laguerre", X, ops=("eval_genlaguerre",)),
    polynomial("jacobi", DEGREES + 1, DEGREES + 2, X),
    polynomial("gegenbauer", DEGREES + 1, X),
    polynomial("genlaguerre", DEGREES + 1, X),
    polynomial("sh_legendre", SHARES, dtypes=(np.float64,), ops=("eval_legendre",)),
    polynomial("sh_chebyt", SHARES, dtypes=(np.float64,), ops=("eval_chebyt",)),
    polynomial("sh_chebyu", SHARES, dtypes=(np.float64,), ops=("eval_chebyu",)),
    polynomial("sh_jacobi", 2.5, 1.5, SHARES, dtypes=(np.float64,), ops=("eval_jacobi",)),
    polynomial("chebyc", X, ops=("eval_chebyt",)),
    polynomial("chebys", X, ops=("eval_chebyu",)),
    special("eval_legendre", 2.5, SHARES, label="real", rtol=256),
    # Degrees at which a rule for polynomials would be wrong: T₋₂ = T₂, P₋₂ = P₁, U₋₂ = −U₀
    *(
        special(f"eval_{name}", degree, SHARES, label=f"degree-{degree}", rtol=256)
        for name in ("legendre", "chebyt", "chebyu")
        for degree in BELOW
    ),
    special("eval_gegenbauer", 0.5, 1.5, SHARES, label="below", rtol=256),
    special("eval_jacobi", 0.5, 0.5, 1.5, SHARES, label="below", rtol=256),
    special("eval_genlaguerre", 0.5, 1.5, SHARES, label="below", rtol=256),
    special("eval_hermite", 3, X, label="number", rtol=64, at=[At((0, 1.0), (0.0,))]),
]

LOGITS = draw(2, 3, low=-3.0, high=3.0)
FUNCTIONS = [
    OpCase(our_scipy.special.softmax, (LOGITS,), scipy.special.softmax, label="special"),
    OpCase(our_scipy.special.log_softmax, (LOGITS,), scipy.special.log_softmax, label="special"),
    OpCase(
        our_scipy.special.logsumexp,
        (LOGITS,),
        scipy.special.logsumexp,
        params={"b": np.array([[1.0, 2.0, 0.0], [0.5, -0.1, 3.0]]), "axis": 1},
        ops=("log", "exp", "sum"),
        label="weights",
        dtypes=(np.float64,),
    ),
    OpCase(
        our_scipy.special.logsumexp,
        (LOGITS, 1, X),
        scipy.special.logsumexp,
        params={"return_sign": True, "keepdims": True},
        ops=("log", "exp", "sum"),
        label="sign",
        dtypes=(np.float64,),
    ),
    OpCase(
        our_scipy.special.logsumexp,
        (np.array([-inf, 1.0]),),
        scipy.special.logsumexp,
        params={"return_sign": True},
        label="sign-of-plain",
        differences=False,
    ),
    OpCase(
        our_scipy.special.diric,
        (np.concatenate([np.ravel(X), [0.0, 2 * np.pi]]), 4),
        reference(lambda x, n: scipy.special.diric(x, int(n))),
        ops=("cos",),
        rtol=128,
        raises=[Raises((X, 0), ArgumentError, "diric: got n=0")],
    ),
    OpCase(
        our_scipy.special.diric,
        (X, 3),
        reference(lambda x, n: scipy.special.diric(x, int(n))),
        ops=("cos",),
        label="odd",
        rtol=128,
    ),
]


def torch_polynomial(name: str) -> Any:
    """PyTorch's, without a gradient."""
    return lambda torch, n, x: getattr(torch.special, name)(x.detach(), n)


TORCH = {
    "eval_legendre": torch_polynomial("legendre_polynomial_p"),
    "eval_legendre-real": None,
    # PyTorch has whole degrees from 0 only.
    **{
        f"eval_{name}-degree-{degree}": None
        for name in ("legendre", "chebyt", "chebyu")
        for degree in BELOW
    },
    "eval_chebyt": torch_polynomial("chebyshev_polynomial_t"),
    "eval_chebyu": torch_polynomial("chebyshev_polynomial_u"),
    "eval_sh_chebyt": torch_polynomial("shifted_chebyshev_polynomial_t"),
    "eval_sh_chebyu": torch_polynomial("shifted_chebyshev_polynomial_u"),
    "eval_hermite": torch_polynomial("hermite_polynomial_h"),
    "eval_hermitenorm": torch_polynomial("hermite_polynomial_he"),
    "eval_laguerre": torch_polynomial("laguerre_polynomial_l"),
}

CASES = with_torch(TORCH, [*INTEGRALS, *ELLIPTIC, *HYPERGEOMETRIC, *POLYNOMIALS, *FUNCTIONS])

NOT_NATIVE = dict.fromkeys(
    (
        *("sici", "shichi", "fresnel", "expi", "exp1", "expn", "spence"),
        *("ellipk", "ellipkm1", "ellipe", "ellipkinc", "ellipeinc", "ellipj", "carlson"),
        *("elliptic_moment", "elliprc", "elliprj"),
        *("elliprd", "elliprf", "elliprg", "hyp0f1", "hyp1f1", "hyperu", "hyp2f1"),
        *(
            "wright_bessel",
            "log_wright_bessel",
            "lambertw",
            "wrightomega",
            "eval_legendre",
            "eval_chebyt",
            "eval_chebyu",
        ),
        *("eval_hermite", "eval_hermitenorm", "eval_genlaguerre", "eval_gegenbauer"),
        *("eval_jacobi",),
    ),
    "no such elementary function",
)
