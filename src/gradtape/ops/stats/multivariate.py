"""Distributions of vectors."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from gradtape import advice
from gradtape.errors import MissingNameError, ShapeError
from gradtape.ops.arguments import as_array, weak_or_array
from gradtape.ops.cast import stop_gradient
from gradtape.ops.checks import check_axes
from gradtape.ops.comparison import isfinite
from gradtape.ops.diagonal import diag, diagonal
from gradtape.ops.exponential import exp, log, sqrt
from gradtape.ops.inspection import finfo
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.cholesky import cholesky
from gradtape.ops.linalg.eigh import eigh
from gradtape.ops.linalg.solve import solve
from gradtape.ops.matmul import matmul
from gradtape.ops.product import prod
from gradtape.ops.reduce import max as amax, sum as sum_of
from gradtape.ops.rounding import floor
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.ops.special.entropy import xlogy
from gradtape.ops.special.gamma import digamma, lgamma
from gradtape.ops.stats.base import Formula, Named, known_or_nan, result_dtype
from gradtape.ops.stats.gamma_family import gamma_entropy
from gradtape.ops.stats.tails import FLAT, power_of_zero
from gradtape.ops.which import all as all_of
from gradtape.typing import Array, ArrayLike

_LOG_2_PI = math.log(2.0 * math.pi)
_SEVERAL = "take gt.vmap for several distributions"


class Frozen:
    """A distribution of vectors with fixed parameters: methods take only where to evaluate.

    Attributes:
        distribution: The distribution.
        parameters: The arguments to add to those of its methods, by name.
    """

    def __init__(
        self,
        distribution: Any,
        parameters: dict[str, Any],
        options: dict[str, Any] | None = None,
        *,
        attributes: dict[str, Any] | None = None,
    ) -> None:
        self.distribution = distribution
        self.parameters = parameters
        self._options = options or {}  # of the density only
        self._attributes = {**parameters, **self._options, **(attributes or {})}

    def __getattr__(self, name: str) -> Any:
        # `copy` asks for special names before the copy has any attributes.
        if name.startswith("_") or "_attributes" not in self.__dict__:
            raise AttributeError(name)
        found = getattr(self.distribution, name, None)
        if callable(found):
            options = self._options if name in _DENSITIES else {}
            return functools.partial(found, **self.parameters, **options)
        if name in self._attributes or found is not None:
            return self._attributes.get(name, found)
        owner = f"{self.distribution.name} with tensors for parameters"
        raise MissingNameError(name, advice.DISTRIBUTIONS.get, owner)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"<gt.scipy.stats.{self.distribution.name} with {given}>"


_DENSITIES = ("logpdf", "pdf")


class MultivariateNormal(Named):
    """The normal distribution of vectors, differentiable in all its arguments.

    >>> gt.scipy.stats.multivariate_normal.logpdf(np.zeros(2), np.zeros(2), np.eye(2))
    np.float64(-1.8378770664093453)
    """

    name = "multivariate_normal"

    def __call__(
        self, mean: ArrayLike = None, cov: ArrayLike = 1, allow_singular: bool = False
    ) -> Frozen:
        """The frozen distribution, with these parameters.

        >>> gt.scipy.stats.multivariate_normal(np.zeros(2), 4.0).entropy()
        np.float64(4.224171427529236)
        """
        _, full_mean, full_cov, size = _normal_arguments(None, mean, cov)
        return Frozen(
            self,
            {"mean": mean, "cov": cov},
            {"allow_singular": allow_singular},
            attributes={"mean": full_mean, "cov": full_cov, "dim": size},
        )

    def logpdf(
        self,
        x: ArrayLike,
        mean: ArrayLike = None,
        cov: ArrayLike = 1,
        allow_singular: bool = False,
    ) -> Array:
        """Logarithm of the density.

        Args:
            x: Vectors along the last axis; of one dimension also numbers.
            mean: The mean; zeros if it is not given.
            cov: The covariance: a matrix, the diagonal of one, or a number for the whole diagonal.
            allow_singular: Whether the covariance may be singular. The density is then one on its
                range, which derivatives take as constant, and there is none elsewhere.

        Raises:
            LinAlgError: The covariance is not positive definite.
            ShapeError: The dimensions do not fit.

        >>> x = gt.tensor([[0.0, 0.0], [1.0, 0.0]])
        >>> gt.scipy.stats.multivariate_normal.logpdf(x, np.zeros(2), np.eye(2))
        tensor([-1.83787707, -2.33787707])
        """
        dtype = _dtype(self.name, x, mean, _matrix(cov))
        x, mean, cov, size = _normal_arguments(x, mean, cov)
        away = x - mean
        finite = isfinite(away)
        inside, vectors, rank = all_of(finite, axis=-1), where(finite, away, 0.0), size
        if allow_singular:
            vectors, cov, rank, on_range = _in_range(vectors, cov)
            inside = inside & on_range
        root = cholesky(cov)
        scaled = solve(root, reshape(vectors, (-1, size)).T)
        square = reshape(sum_of(scaled * scaled, axis=0), x.shape[:-1])
        spread = sum_of(log(diagonal(root)))
        value = -0.5 * (square + rank * _LOG_2_PI) - spread
        value = where(inside, value, -math.inf)
        return known_or_nan(all_of(away == away, axis=-1), value, dtype)

    def pdf(
        self,
        x: ArrayLike,
        mean: ArrayLike = None,
        cov: ArrayLike = 1,
        allow_singular: bool = False,
    ) -> Array:
        """The density; arguments as of `logpdf`.

        >>> gt.scipy.stats.multivariate_normal.pdf(np.zeros(2), np.zeros(2))
        np.float64(0.15915494309189535)
        """
        return exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean: ArrayLike = None, cov: ArrayLike = 1) -> Array:
        """The entropy in nats, half the logarithm of the determinant of 2πe times the covariance.

        Args:
            mean: The mean, used only for the dimension.
            cov: The covariance, as of `logpdf`.

        Raises:
            LinAlgError: The covariance is not positive definite.
            ShapeError: The dimensions do not fit.

        >>> gt.scipy.stats.multivariate_normal.entropy(cov=np.eye(2))
        np.float64(2.8378770664093453)
        """
        dtype = _dtype(self.name, mean, _matrix(cov))
        _, _, cov, size = _normal_arguments(None, mean, cov)
        spread = sum_of(log(diagonal(cholesky(cov))))
        return known_or_nan(True, spread + 0.5 * size * (1 + _LOG_2_PI), dtype)


def _in_range(vectors: Any, cov: Any) -> tuple[Any, Any, Any, Any]:
    """Coordinates of vectors in the range of a covariance, as SciPy decides what is in it.

    Returns:
        The vectors and the covariance in the basis of its eigenvectors, with zeros and ones for
        those outside of its range; its rank; and which vectors are in its range.
    """
    values, basis = eigh(stop_gradient(cov))
    factor = 1e3 if values.dtype.itemsize < 8 else 1e6
    least = factor * finfo(values.dtype).eps * amax(abs(values))
    kept = abs(values) > least  # negative ones, too, which have no Cholesky factor
    turned = matmul(vectors, basis)
    away = stop_gradient(where(kept, 0.0, turned))
    inside = sqrt(sum_of(away * away, axis=-1)) < 1e3 * least
    inner = where(kept[:, None] & kept, matmul(matmul(basis.T, cov), basis), np.eye(len(cov)))
    return where(kept, turned, 0.0), inner, sum_of(kept), inside


def _matrix(cov: Any) -> Any:
    """The matrix of a covariance, which may be an object of `scipy.stats.Covariance`."""
    return getattr(cov, "covariance", cov)


def _dtype(name: str, *arguments: Any) -> Any:
    return result_dtype(name, *(weak_or_array(each) for each in arguments if each is not None))


def _normal_arguments(x: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any, int]:
    """Vectors, mean and matrix in full, as SciPy completes them, and the dimension."""
    cov = as_array(_matrix(cov))
    x = None if x is None else as_array(x)
    mean = None if mean is None else as_array(mean)
    if mean is not None and mean.ndim:
        size = mean.shape[0]
    elif cov.ndim:
        size = cov.shape[0]
    else:
        # Several axes are taken as vectors, for which SciPy raises; one as numbers, as it does.
        size = x.shape[-1] if x is not None and mean is None and x.ndim > 1 else 1
    if cov.ndim == 0:
        cov = cov * np.eye(size)
    elif cov.ndim == 1:
        cov = diag(cov)
    mean = np.zeros(size) if mean is None else mean
    x = mean if x is None else x
    if x.ndim == 0:
        x = reshape(x, (1,))
    if size == 1 and x.shape[-1:] != (1,):
        x = reshape(x, (*x.shape, 1))
    if x.shape[-1] != size or cov.shape != (size, size) or mean.shape not in ((), (size,)):
        raise ShapeError(
            f"multivariate_normal: got x of shape {x.shape}, a mean of shape {mean.shape} and a "
            f"covariance of shape {cov.shape}, expected the same dimension in all of them; "
            f"{_SEVERAL}"
        )
    return x, mean, cov, size


class Dirichlet(Named):
    """The Dirichlet distribution, differentiable in all its arguments.

    >>> gt.scipy.stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), np.ones(3))
    np.float64(0.6931471805599453)
    """

    name = "dirichlet"

    def __call__(self, alpha: ArrayLike) -> Frozen:
        """The frozen distribution, with these parameters.

        >>> gt.scipy.stats.dirichlet(np.ones(3)).pdf(np.array([0.2, 0.3, 0.5]))
        np.float64(2.0)
        """
        return Frozen(self, {"alpha": alpha})

    def logpdf(self, x: ArrayLike, alpha: ArrayLike) -> Array:
        """Logarithm of the density, -inf where a share is negative or they do not add up to 1.

        Args:
            x: Shares along the first axis; the last one may be left out.
            alpha: The parameters, one for each share.

        Raises:
            ShapeError: There is another number of shares than of parameters.

        >>> gt.scipy.stats.dirichlet.logpdf(np.array([0.2, 0.3]), np.array([1.0, 2.0, 3.0]))
        np.float64(1.5040773967762737)
        """
        return self._at(x, alpha, _log_product_of_powers, -math.inf)

    def pdf(self, x: ArrayLike, alpha: ArrayLike) -> Array:
        """The density; arguments as of `logpdf`.

        >>> gt.scipy.stats.dirichlet.pdf(np.array([0.2, 0.3, 0.5]), np.ones(3))
        np.float64(2.0)
        """
        return self._at(x, alpha, _product_of_powers, 0.0)

    def mean(self, alpha: ArrayLike) -> Array:
        """The mean of each share.

        >>> gt.scipy.stats.dirichlet.mean(np.array([1.0, 3.0]))
        array([0.25, 0.75])
        """
        dtype, alpha = _dtype(self.name, alpha), self._parameters(alpha)
        return known_or_nan(all_of(alpha > 0), alpha / sum_of(alpha), dtype)

    def var(self, alpha: ArrayLike) -> Array:
        """The variance of each share.

        >>> gt.scipy.stats.dirichlet.var(np.array([1.0, 1.0, 1.0, 1.0]))
        array([0.0375, 0.0375, 0.0375, 0.0375])
        """
        dtype, alpha = _dtype(self.name, alpha), self._parameters(alpha)
        total = sum_of(alpha)
        value = alpha / total * (1 - alpha / total) / (total + 1)
        return known_or_nan(all_of(alpha > 0), value, dtype)

    def entropy(self, alpha: ArrayLike) -> Array:
        """The entropy in nats.

        >>> gt.scipy.stats.dirichlet.entropy(np.array([2.0, 3.0])).round(12)
        np.float64(-0.234906649788)
        """
        dtype, alpha = _dtype(self.name, alpha), self._parameters(alpha)
        total, rest = sum_of(alpha), alpha.shape[0] - 1
        value = sum_of(gamma_entropy(alpha)) - gamma_entropy(total) - rest * digamma(total)
        return known_or_nan(all_of(alpha > 0), value, dtype)

    @staticmethod
    def _parameters(alpha: Any) -> Any:
        alpha = as_array(alpha)
        check_axes("dirichlet", alpha, 1, what="alpha", instead=_SEVERAL)
        return alpha

    def _at(self, x: Any, alpha: Any, formula: Formula, outside: float) -> Any:
        """A formula of shares, powers and the logarithm of the constant; a number outside."""
        dtype = _dtype(self.name, x, alpha)
        x, alpha = as_array(x), self._parameters(alpha)
        if x.ndim and x.shape[0] + 1 == alpha.shape[0]:
            x = concatenate([x, 1 - sum_of(x, axis=0, keepdims=True)])
        if x.ndim == 0 or x.shape[0] != alpha.shape[0]:
            raise ShapeError(
                f"dirichlet: got x of shape {x.shape} and alpha of shape {alpha.shape}, expected "
                "as many shares along the first axis, or one less"
            )
        inside = all_of(x >= 0, axis=0) & (abs(sum_of(x, axis=0) - 1) < 1e-8)
        known = all_of(x == x, axis=0) & all_of(alpha > 0)
        powers = reshape(alpha - 1, (-1,) + (1,) * (x.ndim - 1))
        scale = lgamma(sum_of(alpha)) - sum_of(lgamma(alpha))
        value = formula(where(inside, x, 0.5), powers, scale, 0)
        return known_or_nan(known, where(inside, value, outside), dtype)


def _log_product_of_powers(x: Any, powers: Any, log_scale: Any, axis: int) -> Any:
    """The logarithm of exp(log_scale)·Π xᵢ^kᵢ."""
    return log_scale + sum_of(xlogy(powers, x), axis=axis)


def _product_of_powers(x: Any, powers: Any, log_scale: Any, axis: int) -> Any:
    """exp(log_scale)·Π xᵢ^kᵢ, with its derivatives where elements are 0 and logarithms infinite."""
    zero = x == 0
    factors = where(zero, power_of_zero(x, powers, zero), 1.0)
    logs = xlogy(where(zero, 0.0, powers), where(zero, 1.0, x))
    total = log_scale + sum_of(logs, axis=axis)
    # It may overflow where a factor is 0 in any case.
    some = all_of((powers <= FLAT) | (x != 0), axis=axis)
    return prod(factors, axis=axis) * exp(where(some, total, 0.0))


class Multinomial(Named):
    """The multinomial distribution, differentiable in its probabilities.

    >>> gt.scipy.stats.multinomial.logpmf(np.array([1, 1]), 2, gt.tensor([0.5, 0.5]))
    tensor(-0.69314718)
    """

    name = "multinomial"

    def __call__(self, n: ArrayLike, p: ArrayLike) -> Frozen:
        """The frozen distribution, with these parameters.

        >>> gt.scipy.stats.multinomial(2, np.array([0.5, 0.5])).pmf(np.array([1, 1]))
        np.float64(0.5)
        """
        return Frozen(self, {"n": n, "p": p})

    def logpmf(self, x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """Logarithm of the probability of counts, -inf if they do not add up to `n`.

        Args:
            x: Counts along the last axis.
            n: How many trials there are.
            p: The probability of each outcome, along the last axis. Its last one is taken as given,
                which SciPy replaces by the rest: the gradient is that of independent parameters.

        Raises:
            ShapeError: There is another number of counts than of probabilities.

        >>> gt.scipy.stats.multinomial.logpmf(np.array([1, 2]), 2, gt.tensor([0.5, 0.5]))
        tensor(-inf)
        """
        return self._at(x, n, p, _log_product_of_powers, -math.inf)

    def pmf(self, x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """The probability of counts; arguments as of `logpmf`.

        >>> gt.scipy.stats.multinomial.pmf(np.array([1, 1]), 2, np.array([0.5, 0.5]))
        np.float64(0.5)
        """
        return self._at(x, n, p, _product_of_powers, 0.0)

    def _at(self, x: Any, n: Any, p: Any, formula: Formula, outside: float) -> Any:
        """A formula of probabilities, counts and the logarithm of the number of ways."""
        dtype = _dtype(self.name, x, n, p)
        x, p, n = stop_gradient(as_array(x)), as_array(p), as_array(n)
        if not x.ndim or x.shape[-1:] != p.shape[-1:]:
            raise ShapeError(
                f"multinomial: got x of shape {x.shape} and p of shape {p.shape}, expected as many "
                "counts as probabilities along the last axis"
            )
        whole = all_of((x >= 0) & (x == floor(x)), axis=-1)
        inside = whole & (sum_of(x, axis=-1) == n)
        known = all_of((p >= 0) & (p <= 1), axis=-1) & (n >= 0) & (n == floor(n))
        known = known & all_of(x == x, axis=-1)
        counts = where(x > 0, x, 0) * 1.0
        ways = lgamma(n + 1.0) - sum_of(lgamma(counts + 1.0), axis=-1)
        value = formula(p, counts, ways, -1)
        return known_or_nan(known, where(inside, value, outside), dtype)


multivariate_normal = MultivariateNormal()
dirichlet = Dirichlet()
multinomial = Multinomial()
