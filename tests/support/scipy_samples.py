"""A call of each function of SciPy for which an error of ours names one of gradtape.

`SAMPLES[name](function)` calls it, SciPy's and ours alike. `tests/support/scipy_calls.py` has more
of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal

Run = Callable[[Any], Any]

_RNG = np.random.default_rng(11)
X = _RNG.uniform(0.2, 0.9, size=12)
Y = _RNG.uniform(0.2, 0.9, size=12)
LONG = _RNG.normal(size=64)
IMAGE = _RNG.normal(size=(5, 6))
SQUARE = _RNG.normal(size=(4, 4))
OTHER = _RNG.normal(size=(4, 4))
TALL = _RNG.normal(size=(5, 3))
POSITIVE = SQUARE @ SQUARE.T + np.eye(4)
LACKING = TALL[:, :1] @ TALL[:1]
BANDS = np.array([[0.0, 0.5, 0.3, 0.2], [4.0, 5.0, 6.0, 7.0]])
DIAGONALS = np.array([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [1.0, 1.0, 2.0, 0.0]])
LABELS = np.array([[1, 1, 2, 2, 2, 0]] * 5)
B, A = scipy.signal.butter(3, 0.3)
SOS = scipy.signal.butter(4, 0.3, output="sos")
ZPK = scipy.signal.butter(3, 0.3, output="zpk")


def on(*args: Any, **options: Any) -> Run:
    return lambda f: f(*args, **options)


def sizes(*args: Any, **options: Any) -> Run:
    """For what has free signs, or is one basis of many."""
    return lambda f: [abs(np.asarray(part)) for part in parts(f(*args, **options))]


def projection(*args: Any) -> Run:
    def run(f: Any) -> Any:
        basis = np.asarray(f(*args))
        return basis @ basis.T

    return run


def written(factor: Any, lower: Any) -> Any:
    """The triangle that is computed; SciPy leaves what there was in the other one."""
    return (np.tril if lower else np.triu)(np.asarray(factor))


def parts(result: Any) -> list[Any]:
    """The arrays of a result."""
    if isinstance(result, (tuple, list)):
        return [part for one in result for part in parts(one)]
    return [] if result is None else [result]


def but_residues(result: Any) -> list[Any]:
    """What `lstsq` gives besides residues: at lacking rank those changed with SciPy 1.18."""
    solution, _, rank, values = result
    return parts((solution, rank, values))


def each(names: str, run: Run) -> dict[str, Run]:
    return dict.fromkeys(names.split(), run)


LINALG: dict[str, Run] = {
    "bandwidth": on(np.triu(SQUARE)),
    "cho_factor": lambda f: written(*f(POSITIVE)),
    "cho_solve": on((np.linalg.cholesky(POSITIVE), True), SQUARE),
    "cho_solve_banded": on((BANDS, False), X[:4]),
    "cholesky_banded": on(BANDS),
    **each("circulant companion fiedler_companion", on(X[:4])),
    "convolution_matrix": on(X[:3], 4),
    **each("coshm sinhm tanhm", on(SQUARE)),
    "diagsvd": on(X[:3], 3, 5),
    "eig": sizes(SQUARE),
    "eig_banded": sizes(BANDS),
    "eigh": sizes(POSITIVE),
    **each("eigh_tridiagonal", sizes(X[:4], Y[:3])),
    "eigvals_banded": on(BANDS),
    "eigvalsh_tridiagonal": on(X[:4], Y[:3]),
    "expm_cond": on(SQUARE),
    "expm_frechet": on(SQUARE, OTHER),
    "fractional_matrix_power": on(POSITIVE, 0.3),
    "funm": on(POSITIVE, np.sin),
    **each("hankel toeplitz", on(X[:3], Y[:4])),
    "hessenberg": on(SQUARE),
    **each("ishermitian issymmetric", on(POSITIVE)),
    "khatri_rao": on(SQUARE, OTHER),
    "ldl": on(POSITIVE),
    "leslie": on(X[:4], Y[:3]),
    "lu_factor": on(SQUARE),
    "lu_solve": on(scipy.linalg.lu_factor(SQUARE), X[:4]),
    **each("matmul_toeplitz solve_toeplitz", on((X[:4] + 4 * np.eye(4)[0], Y[:4]), X[4:8])),
    "matrix_balance": on(SQUARE),
    **each("null_space", projection(TALL.T)),
    **each("orth", projection(TALL)),
    "pinvh": on(POSITIVE),
    "qr_multiply": on(SQUARE, OTHER),
    "rq": on(TALL.T),
    "solve_banded": on((1, 1), DIAGONALS, X[:4]),
    "solve_circulant": on(X[:4], Y[:4]),
    **each("solve_continuous_are solve_discrete_are", on(SQUARE, OTHER, POSITIVE, POSITIVE)),
    **each(
        "solve_continuous_lyapunov solve_discrete_lyapunov solve_lyapunov", on(SQUARE / 4, POSITIVE)
    ),
    "solve_sylvester": on(SQUARE, POSITIVE, OTHER),
    "solve_triangular": on(np.triu(SQUARE), X[:4]),
    "solveh_banded": on(BANDS, X[:4]),
    "subspace_angles": on(TALL[:, :2], TALL[:, 1:]),
    "svd": sizes(TALL[:, :2], full_matrices=False),
}

SPECIAL: dict[str, Run] = {
    "factorial": on(X),
    **each("h1vp h2vp ivp jvp kvp yvp", on(1.5, X)),
    "kn": on(2, X),
    **each("ndtri_exp", on(-X)),
    **each("eval_hermite eval_hermitenorm", on(2, X)),
    "nrdtrimn": on(X / 2, 1.5, 2.0),
    "nrdtrisd": on(0.0, 0.5 + X / 4, 2.0),
    "perm": on(X + 4, 2),
    "zeta": on(X + 2),
    "lambertw": on(X),
    **each("spherical_jn spherical_yn spherical_in spherical_kn", on(1, X)),
}

SIGNAL: dict[str, Run] = {
    **each("bessel butter", on(3, 0.3)),
    **each("cheby1 cheby2", on(3, 1.0, 0.3)),
    "ellip": on(3, 1.0, 20.0, np.array(0.3)),
    **each("coherence csd", on(LONG, LONG**2, nperseg=16)),
    "correlate2d": on(IMAGE, SQUARE),
    "czt": on(X),
    "decimate": on(LONG, 2),
    "filtfilt": on(B, A, LONG),
    "firwin": on(7, 0.3),
    **each("iirnotch iirpeak", on(0.3, 5.0)),
    "istft": on(np.fft.rfft(LONG.reshape(8, 8), axis=0), nperseg=8),
    "lfilter_zi": on(B, A),
    "lfiltic": on(B, A, X[:3]),
    "lombscargle": on(np.sort(10 * X), Y, np.array([0.5, 1.0, 2.0])),
    "medfilt2d": on(IMAGE),
    "order_filter": on(IMAGE, np.ones((3, 3)), 2),
    **each("periodogram", on(LONG)),
    "sosfilt": on(SOS, LONG),
    "sosfilt_zi": on(SOS),
    "sosfiltfilt": on(SOS, LONG),
    "sosfreqz": on(SOS, worN=8),
    "spectrogram": on(LONG, nperseg=16),
    "stft": on(LONG, nperseg=16),
    "welch": on(LONG, nperseg=16),
    "wiener": on(IMAGE),
    "zoom_fft": on(LONG, 0.5),
    "zpk2sos": on(*ZPK),
}

FFT: dict[str, Run] = {
    **each("fftfreq rfftfreq", on(6, 0.5)),
    **each("next_fast_len prev_fast_len", on(7)),
}

NDIMAGE: dict[str, Run] = {
    "affine_transform": on(IMAGE, [0.9, 1.1]),
    **each("black_tophat white_tophat morphological_gradient morphological_laplace", on(IMAGE, 3)),
    **each("center_of_mass", on(IMAGE)),
    **each("convolve1d correlate1d", on(IMAGE, X[:3])),
    **each("fourier_gaussian fourier_shift fourier_uniform", on(IMAGE + 0j, 1.5)),
    **each("gaussian_filter1d gaussian_gradient_magnitude gaussian_laplace", on(IMAGE, 1.5)),
    **each("grey_closing grey_dilation grey_erosion grey_opening", on(IMAGE, 3)),
    "map_coordinates": on(IMAGE, 4 * np.stack([X, Y])),
    **each(
        "maximum minimum mean median standard_deviation sum sum_labels variance",
        on(IMAGE, LABELS, [1, 2]),
    ),
    **each("maximum_filter median_filter minimum_filter uniform_filter", on(IMAGE, 3)),
    **each("maximum_filter1d minimum_filter1d uniform_filter1d", on(IMAGE, 3)),
    **each("percentile_filter", on(IMAGE, 30.0, 3)),
    **each("prewitt spline_filter spline_filter1d", on(IMAGE)),
    "rank_filter": on(IMAGE, 2, 3),
    "rotate": on(IMAGE, 20.0),
    "vectorized_filter": on(IMAGE, np.mean, size=3),
}


def density(*parameters: Any, at: Any = X) -> Run:
    """Of a distribution, all that both have."""
    return lambda f: [getattr(f, name)(at, *parameters) for name in ("pdf", "logpdf", "cdf", "sf")]


def mass(*parameters: Any) -> Run:
    at = np.array([0, 1, 2])
    return lambda f: [getattr(f, name)(at, *parameters) for name in ("pmf", "logpmf")]


STATS: dict[str, Run] = {
    **each(
        "cauchy expon gumbel_l gumbel_r halfcauchy halfnorm laplace logistic norm rayleigh uniform",
        density(),
    ),
    **each("chi2 fisk gamma invgamma lognorm pareto t weibull_min", density(1.5)),
    **each("genextreme genpareto", density(0.4)),
    **each("invgauss skewnorm vonmises", lambda f: f.logpdf(X, 1.5)),
    **each("beta f", density(1.5, 2.5)),
    "truncnorm": density(-1.5, 2.5),
    **each("bernoulli geom poisson", mass(0.3)),
    **each("binom nbinom", mass(4, 0.3)),
    "dirichlet": lambda f: f.logpdf(np.array([0.2, 0.3, 0.5]), np.array([1.5, 2.0, 2.5])),
    "multinomial": lambda f: f.logpmf(np.array([1, 2, 1]), 4, np.array([0.2, 0.3, 0.5])),
    "multivariate_normal": lambda f: f.logpdf(X[:4], Y[:4], POSITIVE),
}

SPARSE_OF = scipy.sparse.csr_array(np.round(SQUARE))
_MATRICES = "bsr coo csc csr dia dok lil"


def dense(run: Run) -> Run:
    return lambda f: run(f).toarray()


SPARSE: dict[str, Run] = {
    "block_array": dense(on([[SPARSE_OF, None], [None, SPARSE_OF]])),
    **each("block_diag hstack vstack", dense(on([SPARSE_OF, SPARSE_OF]))),
    "diags_array": dense(on([X[:4], Y[:3]], offsets=[0, 1])),
    "kron": dense(on(SPARSE_OF, SPARSE_OF)),
    **each("tril triu", dense(on(SPARSE_OF))),
    **each("coo_array csc_array csr_array", dense(on(SQUARE))),
    **each("coo_matrix csc_matrix csr_matrix", dense(on(SQUARE))),
    "bmat": dense(on([[SPARSE_OF, None], [None, SPARSE_OF]])),
    "diags": dense(on([X[:4], Y[:3]], offsets=[0, 1])),
    "kronsum": dense(on(SPARSE_OF, SPARSE_OF)),
    "find": lambda f: np.stack(np.asarray(f(SPARSE_OF)))[:, :3],
    **each("issparse isspmatrix isspmatrix_coo isspmatrix_csc isspmatrix_csr", on(SPARSE_OF)),
}

DEFINITE = scipy.sparse.csc_array(POSITIVE)
SPARSE_LINALG: dict[str, Run] = {
    **each(
        "bicg bicgstab cg cgs gcrotmk gmres lgmres minres tfqmr", on(DEFINITE, X[:4], rtol=1e-12)
    ),
    **each("eigsh svds", sizes(DEFINITE, 2, v0=np.ones(4))),
    **each("expm inv", dense(on(DEFINITE))),
    "expm_multiply": on(DEFINITE, X[:4]),
    "matrix_power": dense(on(SPARSE_OF, 3)),
    "norm": on(SPARSE_OF),
    "spsolve": on(DEFINITE, X[:4]),
    "spsolve_triangular": on(scipy.sparse.csc_array(np.tril(POSITIVE)), X[:4]),
}

DISTANCES: dict[str, Run] = {
    **each(
        "braycurtis canberra chebyshev cityblock correlation cosine euclidean jensenshannon "
        "sqeuclidean",
        on(X, Y),
    ),
    "minkowski": on(X, Y, 3),
    "seuclidean": on(X, Y, X + 1),
    "mahalanobis": on(X[:4], Y[:4], POSITIVE),
    **each("cdist directed_hausdorff", on(TALL, OTHER[:, :3])),
    "pdist": on(TALL),
    "squareform": on(X[:10]),
}

SAMPLES: dict[str, Run] = {
    f"scipy.{namespace}.{name}": run
    for namespace, table in {
        "linalg": LINALG,
        "special": SPECIAL,
        "signal": SIGNAL,
        "fft": FFT,
        "ndimage": NDIMAGE,
        "stats": STATS,
        "sparse": SPARSE,
        "sparse.linalg": SPARSE_LINALG,
        "spatial.distance": DISTANCES,
    }.items()
    for name, run in table.items()
}

NO_TENSOR: dict[str, str] = {}

EXEMPT: dict[str, str] = {
    "scipy.linalg.LinAlgError": "it is an error, and the same",
    "scipy.linalg.kron": "deprecated where it is there, and no longer in SciPy 1.17",
    "scipy.stats.gaussian_kde": "test_kernel_density.py has its methods",
    "scipy.sparse.SparseWarning": "nothing that takes tensors",
    "scipy.sparse.SparseEfficiencyWarning": "nothing that takes tensors",
    **{
        f"scipy.sparse.{name}": "what is said depends on the method; test_sparse.py has them"
        for name in (
            *(f"{kind}_{form}" for kind in _MATRICES.split() for form in ("array", "matrix")),
            *("sparray", "spmatrix"),
        )
    },
}


# ---- options of SciPy's, and calls that are said with their arguments ---------------------------

# The function, what it is called with by name, and what of its result is compared.
CALLED: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
    ("linalg.cholesky", {"a": POSITIVE}, parts),
    ("linalg.cholesky", {"a": POSITIVE, "lower": True}, parts),
    ("linalg.cholesky", {"a": POSITIVE, "lower": False, "check_finite": False}, parts),
    ("linalg.qr", {"a": TALL}, parts),
    ("linalg.qr", {"a": TALL.T}, parts),
    ("linalg.qr", {"a": TALL, "mode": "economic"}, parts),
    ("linalg.qr", {"a": TALL, "mode": "r"}, parts),
    ("linalg.qr", {"a": TALL, "pivoting": True}, parts),
    ("linalg.qr", {"a": TALL, "mode": "r", "pivoting": True}, parts),
    ("linalg.lstsq", {"a": TALL, "b": X[:5]}, parts),
    ("linalg.lstsq", {"a": LACKING, "b": X[:5]}, but_residues),
    ("linalg.lstsq", {"a": TALL, "b": X[:5], "cond": 0.5}, but_residues),
    ("linalg.pinv", {"a": LACKING}, parts),
    ("linalg.pinv", {"a": TALL, "rtol": 0.5}, parts),
    ("linalg.pinv", {"a": LACKING, "return_rank": True}, parts),
    ("differentiate.derivative", {"f": np.sin, "x": X}, lambda result: [result.df]),
    ("differentiate.jacobian", {"f": np.sin, "x": X}, lambda result: [result.df]),
    (
        "differentiate.hessian",
        {"f": lambda x: (x * x * x).sum(axis=0), "x": X[:3]},
        lambda r: [r.ddf],
    ),
]
