"""Calls of SciPy's functions on tensors: which run as they are, which need SciPy's setting.

Each call is `call(function, x)`, where `x` is an array or a tensor; other arrays it needs are made
by `x.__array_namespace__()`, as SciPy does not mix arrays of two libraries.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy._lib._array_api import SCIPY_ARRAY_API

from builds import SCIPY

SETTING = bool(SCIPY_ARRAY_API)
ALWAYS, WITH_SETTING, NEVER = "always", "with the setting", "never"
SINCE_1_18 = "with the setting, since SciPy 1.18"
IS_1_18 = SCIPY >= (1, 18)

_RNG = np.random.default_rng(7)
VECTOR = _RNG.uniform(0.2, 0.9, 6)
SAMPLE = _RNG.uniform(0.2, 0.9, 12)
ROWS = _RNG.uniform(0.2, 0.9, (3, 4))
MATRIX = _RNG.uniform(0.2, 0.9, (3, 3)) + 2 * np.eye(3)
MATRIX = MATRIX @ MATRIX.T

Run = Callable[[Callable[..., Any], Any], Any]


@dataclass(frozen=True)
class Call:
    """A call of one function of SciPy.

    Attributes:
        name: Its name below `scipy`.
        call: Calls it.
        point: The array to differentiate at.
        works: When it takes tensors.
        instead: The name below `gt` of what does the same.
    """

    name: str
    call: Run
    point: Any
    works: str
    instead: str | None = None

    @property
    def function(self) -> Any:
        """The function as SciPy ships it."""
        module, _, name = self.name.rpartition(".")
        return getattr(importlib.import_module(f"scipy.{module}"), name)

    def __call__(self, x: Any) -> Any:
        """The result, all of it as one array."""
        return joined(self.call(self.function, x))

    @property
    def runs(self) -> bool:
        """Whether it takes tensors in this process."""
        with_setting = (WITH_SETTING, SINCE_1_18) if IS_1_18 else (WITH_SETTING,)
        return self.works == ALWAYS or (SETTING and self.works in with_setting)


def joined(result: Any) -> Any:
    """Arrays of a result one after the other, complex ones as real and imaginary part."""
    parts = list(result) if isinstance(result, tuple) else [result]
    xp = next((p.__array_namespace__() for p in parts if hasattr(p, "__array_namespace__")), np)
    flat = []
    for part in parts:
        array = xp.reshape(xp.asarray(part), (-1,))
        whole = array.dtype.kind == "c"
        flat += [xp.real(array), xp.imag(array)] if whole else [xp.astype(array, xp.float64)]
    return xp.concat(flat)


def like(x: Any, values: Any) -> Any:
    """Values as an array of the library of `x`."""
    return x.__array_namespace__().asarray(values)


def plain(function: Callable[..., Any], x: Any) -> Any:
    return function(x)


def part(name: str, run: Run = plain) -> Run:
    """An attribute of the result."""
    return lambda function, x: getattr(run(function, x), name)


def halves(function: Callable[..., Any], x: Any) -> Any:
    return function(x[: len(x) // 2], x[len(x) // 2 :])


def calls(
    works: str,
    namespace: str,
    names: str,
    call: Run = plain,
    point: Any = VECTOR,
    instead: str | None = None,
) -> list[Call]:
    """One call of each of the functions named; `instead` may be the module they are in, too."""
    return [
        Call(
            f"{namespace}.{name}",
            call,
            point,
            works,
            f"scipy.{instead}.{name}" if instead == namespace else instead,
        )
        for name in names.split()
    ]


never = functools.partial(calls, NEVER)
always = functools.partial(calls, ALWAYS)
needs = functools.partial(calls, WITH_SETTING)
since_1_18 = functools.partial(calls, SINCE_1_18)


# ---- scipy.special: ufuncs reach gradtape by NumPy's protocol, or by SciPy's wrappers -----------

SPECIAL = [
    *always(
        "special",
        "cbrt cosdg cosm1 cotdg dawsn digamma ellipe ellipk ellipkm1 entr erf erfc erfcinv erfcx "
        "erfi erfinv exp1 exp10 exp2 expi expit expm1 exprel gamma gammaln i0 i0e i1 i1e j0 j1 k0 "
        "k0e k1 k1e log1p log_expit log_ndtr loggamma logit ndtr ndtri psi rgamma sinc sindg "
        "softplus spence tandg wrightomega y0 y1",
    ),
    *always(
        "special",
        "beta betaln binom boxcox boxcox1p chdtr chdtrc chdtri gammainc gammaincc gammainccinv "
        "gammaincinv huber hyp0f1 inv_boxcox iv jv kl_div kv owens_t poch powm1 pseudo_huber "
        "rel_entr stdtr stdtrit struve xlog1py xlogy yv",
        lambda f, x: f(1.5, x),
    ),
    *always(
        "special",
        "betainc betaincc betaincinv fdtr fdtrc gdtr hyp1f1",
        lambda f, x: f(1.5, 2.0, x),
    ),
    *always("special", "hyp2f1", lambda f, x: f(1.5, 2.0, 2.5, x)),
    *always("special", "eval_legendre expn jvp yn", lambda f, x: f(2, x)),
    *always("special", "fresnel"),
    *needs("special", "logsumexp softmax log_softmax", instead="special"),
    *needs("special", "multigammaln", lambda f, x: f(x + 2, 2), instead="special"),
    *needs("special", "polygamma", lambda f, x: f(1, x), instead="special"),
    *never("special", "diric", lambda f, x: f(x, 3), instead="special"),
    *never("special", "spherical_jn", lambda f, x: f(1, x), instead="special"),
    *never("special", "comb", lambda f, x: f(x + 4, 2), instead="special"),
]

# ---- scipy.linalg, scipy.fft --------------------------------------------------------------------

LINALG = [
    *needs("linalg", "block_diag", lambda f, x: f(x, 2 * x), MATRIX, "linalg"),
    *needs("linalg", "fiedler", instead="linalg"),
    *needs(
        "linalg",
        "orthogonal_procrustes",
        lambda f, x: f(x, like(x, MATRIX**2)),
        ROWS[:, :3],
        "linalg",
    ),
    *never(
        "linalg",
        "cholesky cosm det eigh eigvals eigvalsh expm inv logm lu norm pinv polar qr schur signm "
        "sinm sqrtm svd svdvals tanm",
        plain,
        MATRIX,
        "linalg",
    ),
    *never("linalg", "lstsq solve", lambda f, x: f(x, like(x, VECTOR[:3])), MATRIX, "linalg"),
]

FFT = [
    *needs("fft", "fft ifft fftn ifftn rfft irfft rfftn irfftn", instead="fft"),
    *needs("fft", "hfft ihfft hfftn ihfftn", instead="fft"),
    *needs("fft", "fft2 ifft2 rfft2 irfft2 hfft2 ihfft2", plain, MATRIX, "fft"),
    *needs("fft", "fht ifht", lambda f, x: f(x, 0.1, 0.5), instead="fft"),
    *always("fft", "fftshift ifftshift", instead="fft"),
    *never("fft", "dct idct dst idst dctn idctn dstn idstn", instead="fft"),
]

# ---- scipy.signal, scipy.ndimage ----------------------------------------------------------------

SIGNAL = [
    *needs("signal", "fftconvolve oaconvolve", lambda f, x: f(x, x[:3]), instead="signal"),
    *needs("signal", "hilbert", instead="signal"),
    *needs("signal", "resample", lambda f, x: f(x, 9), instead="signal"),
    *needs("signal", "hilbert2", plain, MATRIX, "signal"),
    *needs("signal", "envelope"),
    *needs("signal", "freqz", lambda f, x: f(x, worN=5)[1], instead="signal"),
    *needs(
        "signal",
        "freqs",
        lambda f, x: f(x[:3], x[3:], like(x, [1.0, 2.0]))[1],
        instead="signal",
    ),
    *needs("signal", "freqz_zpk", lambda f, x: f(x[:2], x[2:4], 2.0, worN=5)[1], instead="signal"),
    *needs(
        "signal",
        "freqs_zpk",
        lambda f, x: f(x[:2], x[2:4], 2.0, worN=like(x, [1.0, 2.0]))[1],
        instead="signal",
    ),
    *needs(
        "signal", "freqz_sos", lambda f, x: f(x.reshape(1, 6) / x[3], worN=5)[1], instead="signal"
    ),
    *needs("signal", "group_delay", lambda f, x: f((x[:2], x[2:4]), w=5)[1], instead="signal"),
    *needs("signal", "zpk2tf", lambda f, x: f(x[:2], x[2:4], x[4]), instead="signal"),
    *needs("signal", "tf2zpk", lambda f, x: f(x[:3], x[3:])[2]),
    *needs("signal", "sos2tf", lambda f, x: f(x.reshape(1, 6)), instead="signal"),
    *needs("signal", "normalize", halves),
    *needs("signal", "lp2lp lp2hp lp2bp lp2bs", lambda f, x: f(x[:3], x[3:])),
    *needs(
        "signal",
        "lp2lp_zpk lp2hp_zpk lp2bp_zpk lp2bs_zpk bilinear_zpk",
        lambda f, x: f(x[:2], x[2:4], 2.0, 3.0),
        instead="signal",
    ),
    *needs("signal", "vectorstrength", lambda f, x: f(x, 0.3)),
    *needs("signal", "gauss_spline", lambda f, x: f(x, 2)),
    *never("signal", "convolve correlate convolve2d", lambda f, x: f(x, x), MATRIX, "signal"),
    *never("signal", "detrend", instead="signal"),
    *never("signal", "savgol_filter", lambda f, x: f(x, 5, 2), instead="signal"),
    *never("signal", "upfirdn", lambda f, x: f(x[:3], x), instead="signal"),
    *never("signal", "resample_poly", lambda f, x: f(x, 2, 1), instead="signal"),
    *never("signal", "lfilter", lambda f, x: f(x[:2], x[2:4], x), instead="signal"),
    *never("signal", "stft", lambda f, x: f(x, nperseg=4), SAMPLE, "signal"),
    *never("signal", "medfilt", lambda f, x: f(x, 3), instead="signal"),
    *never("signal", "welch", lambda f, x: f(x, nperseg=4), instead="signal"),
    *never("signal", "cspline1d bilinear", lambda f, x: f(x, 1.0)),
]

NDIMAGE = [
    *never("ndimage", "gaussian_filter shift zoom", lambda f, x: f(x, 1.5), MATRIX, "ndimage"),
    *never("ndimage", "sobel laplace", plain, MATRIX, "ndimage"),
    *never("ndimage", "convolve correlate", lambda f, x: f(x, x), MATRIX, "ndimage"),
    *never("ndimage", "sum mean", plain, MATRIX, "ndimage"),
]

# ---- scipy.stats --------------------------------------------------------------------------------

STATS = [
    *needs(
        "stats",
        "zscore gzscore skew kurtosis sem variation gmean hmean tmean tvar tstd iqr "
        "median_abs_deviation entropy",
        plain,
        SAMPLE,
        "stats",
    ),
    *needs(
        "stats",
        "kstat kstatvar lmoment gstd tsem tmin tmax circmean circvar circstd differential_entropy",
        plain,
        SAMPLE,
    ),
    *needs("stats", "moment", lambda f, x: f(x, 3), SAMPLE, "stats"),
    *needs("stats", "pmean", lambda f, x: f(x, 2.5), SAMPLE, "stats"),
    *needs("stats", "zmap", lambda f, x: f(x, x * x), SAMPLE, "stats"),
    *needs("stats", "trim_mean quantile", lambda f, x: f(x, 0.2), SAMPLE),
    *needs("stats", "sigmaclip", part("clipped"), SAMPLE),
    *needs("stats", "mode", part("mode"), SAMPLE),
    *needs("stats", "describe", lambda f, x: (f(x).variance, f(x).skewness), SAMPLE),
    *needs("stats", "directional_stats", part("mean_direction"), ROWS),
    *needs("stats", "boxcox_llf yeojohnson_llf", lambda f, x: f(0.5, x), SAMPLE, "stats"),
    *needs("stats", "pearsonr", lambda f, x: tuple(halves(f, x)), SAMPLE, "stats"),
    *needs("stats", "ttest_ind ttest_rel f_oneway", lambda f, x: tuple(halves(f, x)), SAMPLE),
    *needs("stats", "alexandergovern bartlett levene", part("statistic", halves), SAMPLE),
    *needs("stats", "ttest_1samp", lambda f, x: tuple(f(x, 0.1)), SAMPLE),
    *needs(
        "stats",
        "chisquare power_divergence combine_pvalues jarque_bera",
        lambda f, x: tuple(f(x)),
        SAMPLE,
    ),
    *needs("stats", "skewtest kurtosistest normaltest", part("statistic"), SAMPLE),
    *since_1_18("stats", "linregress", halves),
    *never("stats", "wasserstein_distance", halves, instead="stats"),
    *never("stats", "boxcox yeojohnson", lambda f, x: f(x, 0.5)),
    *never("stats", "gaussian_kde", plain, SAMPLE, "stats"),
    *never("stats", "norm", lambda f, x: f.logpdf(x), instead="scipy.stats.norm.logpdf"),
    *never("stats", "gamma", lambda f, x: f.logpdf(x, 2.0), instead="scipy.stats.gamma.logpdf"),
]

# ---- the others ---------------------------------------------------------------------------------

OTHERS = [
    *needs("integrate", "trapezoid", lambda f, x: f(x, x * x), instead="integrate"),
    *needs("integrate", "cumulative_trapezoid cumulative_simpson", instead="integrate"),
    *needs("integrate", "romb", lambda f, x: f(x[:5]), instead="integrate"),
    *needs(
        "integrate",
        "tanhsinh",
        lambda f, x: f(lambda t, c: c * t * t, 0 * x, x, args=(x,)).integral,
    ),
    *needs(
        "integrate", "cubature", lambda f, x: f(lambda t: t[:, 0] ** 2, 0 * x[:1], x[:1]).estimate
    ),
    # Only the function: SciPy 1.18 makes arrays of the bounds, unless the setting is on.
    *always("integrate", "fixed_quad", lambda f, x: f(lambda t: x[0] * t * t + x[1] * t, 0, 2)[0]),
    *since_1_18("integrate", "simpson", instead="integrate"),
    *never("integrate", "quad", lambda f, x: f(lambda t: t * x[0], 0, 1), instead="integrate"),
    *never(
        "integrate", "solve_ivp", lambda f, x: f(lambda t, y: -y, (0, 1), x), instead="integrate"
    ),
    *needs("optimize", "rosen rosen_der rosen_hess"),
    *needs("optimize", "rosen_hess_prod", lambda f, x: f(x, x)),
    *needs(
        "optimize.elementwise",
        "find_root",
        lambda f, x: f(lambda y, c: y * y - c, (0 * x, 0 * x + 2), args=(x,)).x,
    ),
    *always("optimize", "newton", lambda f, x: f(lambda y: y * y - x[0], 1.0)),
    *never("optimize", "minimize", lambda f, x: f(lambda y: (y * y).sum(), x), instead="optimize"),
    *never("optimize", "least_squares", lambda f, x: f(lambda y: y, x), instead="optimize"),
    *needs(
        "optimize.elementwise",
        "find_minimum",
        lambda f, x: f(lambda y, c: (y - c) ** 2, (0 * x - 1, 0 * x + 0.1, 0 * x + 2), args=(x,)).x,
    ),
    *needs(
        "differentiate",
        "derivative",
        lambda f, x: f(np.exp, x).df,
        instead="grad(lambda x: np.sum(f(x)))(x)",
    ),
    *needs(
        "differentiate", "jacobian", lambda f, x: f(lambda y: y**3, x).df, instead="jacobian(f)(x)"
    ),
    *never(
        "interpolate",
        "CubicSpline PchipInterpolator make_interp_spline",
        lambda f, x: f(like(x, np.arange(6.0)), x),
        instead="interpolate",
    ),
    *never("interpolate", "interp1d", lambda f, x: f(np.arange(6.0), x), instead="interpolate"),
    *never(
        "interpolate",
        "RegularGridInterpolator",
        lambda f, x: f((like(x, np.arange(6.0)),), x),
        instead="interpolate",
    ),
    *always("interpolate", "lagrange", lambda f, x: f(np.arange(6.0), x)(1.5)),
    *needs("cluster.vq", "whiten", plain, ROWS),
    *never("cluster.vq", "vq kmeans", lambda f, x: f(x, x[:2]), ROWS),
    *never("cluster.hierarchy", "linkage", plain, ROWS),
    *needs(
        "spatial.transform",
        "Rotation",
        lambda f, x: (f.from_rotvec(x[:3]).apply(x[3:]), f.from_euler("xyz", x[:3]).as_quat()),
    ),
    *needs(
        "spatial.transform", "RigidTransform", lambda f, x: f.from_translation(x[:3]).as_matrix()
    ),
    *never(
        "spatial.distance",
        "cosine euclidean cdist",
        lambda f, x: f(x, x + 1.0),
        instead="spatial.distance",
    ),
    *never("spatial.distance", "pdist", plain, ROWS, "spatial.distance"),
    *needs("constants", "convert_temperature", lambda f, x: f(x, "C", "K")),
    *needs("constants", "lambda2nu nu2lambda"),
]

CALLS = {
    call.name: call
    for call in itertools.chain(SPECIAL, LINALG, FFT, SIGNAL, NDIMAGE, STATS, OTHERS)
}
