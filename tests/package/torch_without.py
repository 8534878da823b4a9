"""Where gradtape is not compared with PyTorch, or says something else, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# ---- ops that PyTorch does not have --------------------------------------------------------------

UNKNOWN = "PyTorch has no such function"
RANDOM = "other random numbers; tests of their distribution are in test_random.py"

WITHOUT_PEER: dict[str, str] = {
    # NumPy
    **dict.fromkeys(("bitwise_count", "cbrt", "lexsort", "ravel_multi_index", "spacing"), UNKNOWN),
    **dict.fromkeys(("nanargmax", "nanargmin", "nanmax", "nanmin"), UNKNOWN),
    "nan_extreme_shares": "the gradient of nanmax and nanmin, which PyTorch does not have",
    "nonzero_total": "a check of what average divides by",
    "scale_gradient": UNKNOWN,
    "numbers_along": "what the compiled argmax counts with",
    "conv_weights": "gradients of kernels by sample, which PyTorch gives by vmap alone",
    # Special functions
    **dict.fromkeys(
        (
            *("boxcox", "boxcox1p", "cosdg", "cosm1", "cotdg", "dawsn", "erfcinv", "erfi"),
            *("exprel", "inv_boxcox", "inv_boxcox1p", "ndtri_exp", "owens_t", "powm1"),
            *("pseudo_huber", "rel_entr", "sindg", "tandg", "wofz"),
            *("beta", "betaln", "binom", "gammasgn", "loggamma", "poch", "rgamma"),
            *("betainc", "betaincc", "betaincinv", "betainccinv", "gammaincinv", "gammainccinv"),
            *("stdtr", "stdtrit"),
            *(
                "airye",
                "hankel1",
                "hankel2",
                "scaled_bessel",
                "i2",
                "i2e",
                "iv",
                "ive",
                "jv",
                "jve",
            ),
            *("kv", "kve", "yv", "yve", "modstruve", "struve"),
            *("spherical_i", "spherical_k", "spherical_y"),
            *("bei", "beip", "ber", "berp", "carlson", "kei", "keip", "ker", "kerp", "voigt"),
            *("elliprc", "elliprj", "elliptic_moment", "log_wright_bessel", "wright_bessel"),
            *("ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc", "ellipkm1"),
            *("elliprd", "elliprf", "elliprg", "hyp0f1", "hyp1f1", "hyp2f1", "hyperu"),
            *("exp1", "expi", "expn", "fresnel", "shichi", "sici", "spence"),
            *("eval_gegenbauer", "eval_jacobi", "lambertw", "wrightomega"),
        ),
        UNKNOWN,
    ),
    **dict.fromkeys(
        ("betainc_slope", "beta_density", "gammainc_slope"),
        "derivatives in the parameters, which PyTorch does not have",
    ),
    **dict.fromkeys(("stdtr_by_df", "stdtr_slope", "t_density"), "derivatives of stdtr"),
    **dict.fromkeys(("gamma_tail", "beta_tail", "polygamma_step"), "parts of other functions"),
    "huber": "PyTorch's loss takes a number for delta, not an array",
    "kl_div": "PyTorch's function of that name is another one, and takes logarithms",
    # Linear algebra
    **dict.fromkeys(
        (
            *("balanced_scales", "cholesky_banded", "cholesky_banded_change"),
            *("cholesky_banded_pull", "hermitian_function", "hessenberg", "hessenberg_pull"),
            *("hessenberg_turning", "iterative_solve", "ldl", "polar", "riccati", "schur"),
            *("solve_banded", "solve_discrete_lyapunov", "solve_sylvester", "solve_toeplitz"),
        ),
        UNKNOWN,
    ),
    **dict.fromkeys(
        ("balanced_sylvester", "real_result", "triangular_eigenvectors", "verified"),
        "steps of polar, schur and functions of matrices that PyTorch does not have",
    ),
    "qr_pivots": "PyTorch's qr has no pivots",
    "independent_columns": "a check of what qr divides by",
    # Signals and images
    **dict.fromkeys(("dct", "dst", "lfilter", "sos_pairs", "spline_filter1d"), UNKNOWN),
    # Random numbers
    **dict.fromkeys(
        (
            *("random_bernoulli", "random_integers", "random_normal", "random_permutation"),
            *("random_uniform", "random_kept", "dropout", "random_gamma", "random_poisson"),
        ),
        RANDOM,
    ),
}


# Steps of functions that are compared: what goes wrong in them is seen there.
COMPARED_THROUGH = {
    "cofactors": "det",
    "gamma_density": "gammainc",
    "overlap_add": "sliding_window_view",
    "solve_again": "solve",
}

# By case: where the value is compared, and not the gradient.
VALUE_ONLY: dict[str, str] = {
    **dict.fromkeys(("heaviside", "nextafter"), "PyTorch has no gradient"),
    **dict.fromkeys(("j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e"), "PyTorch has no gradient"),
    **dict.fromkeys(("airy_ai", "spherical_jn-order-0", "zeta"), "PyTorch has no gradient"),
    **dict.fromkeys(
        (
            *("eval_legendre", "eval_chebyt", "eval_chebyu", "eval_sh_chebyt", "eval_sh_chebyu"),
            *("eval_hermite", "eval_hermite-number", "eval_hermitenorm", "eval_laguerre"),
        ),
        "PyTorch has no gradient",
    ),
    "histogram": "PyTorch's edges have no gradient",
    "gammaincc": "PyTorch has no gradient in the first argument",
    "digamma": "PyTorch's trigamma has nine digits near 0",
}


# ---- numbers at which an elementwise function means to differ ------------------------------------


def is_infinite(x: Any) -> Any:
    return np.isinf(x)


def is_far(x: Any) -> Any:
    return np.abs(x) > 1e100


def is_tie_of_infinities(x: Any, y: Any) -> Any:
    return np.isinf(x) & (x == y)


def is_tiny_pair(x: Any, y: Any) -> Any:
    return np.hypot(x, y) < 1e-300


def has_infinite_quotient(x: Any, y: Any) -> Any:
    return np.isinf(x / y)


def is_overflow_of_quotient(x: Any, y: Any) -> Any:
    return has_infinite_quotient(x, y) & np.isfinite(x) & (y != 0)


# By function: at which arguments, and the reason.
UNLIKE_AT: dict[str, tuple[Callable[..., Any], str]] = {
    # They multiply infinities by 0, or subtract them, where a limit exists; ours is the limit.
    "silu": (is_infinite, "nan from inf·0"),
    "gelu": (is_far, "nan from inf·0, and from the cube of x"),
    "hardswish": (is_infinite, "nan from inf·0"),
    "mish": (is_infinite, "nan from inf·0"),
    "erfcx": (is_infinite, "nan from inf·0"),
    "log_ndtr": (is_far, "nan from inf − inf"),
    "logaddexp": (is_tie_of_infinities, "nan from inf − inf; ours shares the tie"),
    "logaddexp2": (is_tie_of_infinities, "nan from inf − inf; ours shares the tie"),
    "copysign": (lambda x, _y: ~np.isfinite(x), "nan from inf/inf; ours is the sign"),
    "modf": (is_infinite, "nan from inf − inf; NumPy's fraction of inf is 0"),
    "xlogy": (is_tiny_pair, "nan from 0/0, and subnormal quotients that lose their digits"),
    "xlog1py": (lambda x, y: (x == 0) & (y == -1), "nan from 0/0"),
    "frexp": (lambda x: (x != 0) & (np.abs(x) < 1e-100), "2 to minus the exponent overflows"),
    "hypot": (is_tiny_pair, "nan from 0/0, and subnormal quotients that lose their digits"),
    # What a function of nan, or outside of where it is defined, has for a slope.
    "abs": (np.isnan, "they have sign(nan) = 0, so that nan has a slope of 0"),
    "sign": (np.isnan, "they have sign(nan) = 0; NumPy has nan"),
    "arccosh": (lambda x: x <= -1, "they have slopes where the value is nan"),
    "logit": (lambda x: ~((x > 0) & (x < 1)), "they have a slope of nan outside of (0, 1)"),
    "fmod": (has_infinite_quotient, "the slope is infinite, or nan where the value is"),
    "remainder": (is_overflow_of_quotient, "their value for long arrays is nan"),
    "divmod": (is_overflow_of_quotient, "their value for long arrays is nan"),
    "heaviside": (lambda x, _y: np.isnan(x), "they have 0 at nan; NumPy has nan"),
    # At the poles, and next to them, values are those of SciPy.
    "lgamma": (
        lambda x: (x == -np.inf) | ((x != 0) & (np.abs(x) < 1e-300)),
        "-inf at -inf, and inf at subnormal numbers",
    ),
    "gammaincc": (
        lambda a, x: np.isnan(a) | np.isnan(x) | (a == 5e-324),
        "they have values at nan; SciPy's is 0 at the smallest a",
    ),
    "i1": (
        lambda x: np.isnan(x) | is_far(x) | ((x != 0) & (np.abs(x) < 1e-300)),
        "SciPy's function of order 2 is nan; they have a slope of 1/2 at nan, and nan far out",
    ),
    "i1e": (lambda x: np.isnan(x) | is_far(x), "the same; they have a slope of 1/2 at nan"),
    "gamma": (lambda x: np.signbit(x) & (x <= 0), "the sign of the infinity at -0.0, nan at poles"),
}
