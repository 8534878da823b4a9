"""Distributions of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.errors import ShapeError, UnsupportedError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import stop_gradient
from gradtape.ops.comparison import logical_and
from gradtape.ops.diagonal import diag, diagonal
from gradtape.ops.exponential import exp, log
from gradtape.ops.join import concatenate
from gradtape.ops.linalg.cholesky import cholesky
from gradtape.ops.linalg.solve import solve
from gradtape.ops.product import prod
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.rounding import floor
from gradtape.ops.select import where
from gradtape.ops.shape import reshape
from gradtape.ops.special.entropy import xlogy
from gradtape.ops.special.gamma import lgamma
from gradtape.ops.stats.base import unboxed
from gradtape.ops.stats.tails import power_of_zero
from gradtape.ops.which import all as all_of
from gradtape.typing import Array, ArrayLike

_LOG_2_PI = math.log(2.0 * math.pi)


class MultivariateNormal:
    """The normal distribution of vectors, differentiable in all its arguments.

    >>> gt.stats.multivariate_normal.logpdf(np.zeros(2), np.zeros(2), np.eye(2))
    np.float64(-1.8378770664093453)
    """

    def logpdf(
        self,
        x: ArrayLike,
        /,
        mean: ArrayLike = None,
        cov: ArrayLike = 1,
        allow_singular: bool = False,
    ) -> Array:
        """Logarithm of the density.

        Args:
            x: Vectors along the last axis; of one dimension also numbers.
            mean: The mean; zeros if it is not given.
            cov: The covariance: a matrix, the diagonal of one, or a number for all of that.
            allow_singular: Only False: a singular covariance has no density.

        Raises:
            LinAlgError: The covariance is not positive definite.
            ShapeError: The dimensions do not fit.

        >>> gt.stats.multivariate_normal.logpdf(np.array([[0.0, 0.0], [1.0, 0.0]]))
        array([-1.83787707, -2.33787707])
        """
        if allow_singular:
            raise UnsupportedError(
                "multivariate_normal: came allow_singular=True; a singular covariance has no "
                "density; project x on its range first"
            )
        x, mean, cov, size = _normal_arguments(x, mean, cov)
        root = cholesky(cov)
        away = reshape(x - mean, (-1, size))
        scaled = solve(root, away.T)
        square = reshape(sum_of(scaled * scaled, axis=0), x.shape[:-1])
        spread = sum_of(log(diagonal(root)))
        return -0.5 * (square + size * _LOG_2_PI) - spread

    def pdf(self, x: ArrayLike, /, mean: ArrayLike = None, cov: ArrayLike = 1) -> Array:
        """The density; arguments as of `logpdf`.

        >>> gt.stats.multivariate_normal.pdf(np.zeros(2), np.zeros(2))
        np.float64(0.15915494309189535)
        """
        return exp(self.logpdf(x, mean, cov))


def _normal_arguments(x: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any, int]:
    """Vectors, mean and matrix in full, as SciPy completes them, and the dimension."""
    x, cov = as_array(x), as_array(cov)
    mean = None if mean is None else as_array(mean)
    if mean is not None and mean.ndim:
        size = mean.shape[0]
    elif cov.ndim:
        size = cov.shape[0]
    else:
        # Several axes are taken as vectors, one as numbers, as SciPy does.
        size = x.shape[-1] if mean is None and x.ndim > 1 else 1
    if x.ndim == 0:
        x = reshape(x, (1,))
    if size == 1 and x.shape[-1:] != (1,):
        x = reshape(x, (*x.shape, 1))
    if cov.ndim == 0:
        cov = cov * np.eye(size)
    elif cov.ndim == 1:
        cov = diag(cov)
    mean = np.zeros(size) if mean is None else mean
    if x.shape[-1] != size or cov.shape != (size, size):
        raise ShapeError(
            f"multivariate_normal: came x of shape {x.shape}, a mean of size {size} and a "
            f"covariance of shape {cov.shape}; needed the same dimension in all of them"
        )
    return x, mean, cov, size


class Dirichlet:
    """The Dirichlet distribution, differentiable in all its arguments.

    >>> gt.stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), np.ones(3))
    np.float64(0.6931471805599453)
    """

    def logpdf(self, x: ArrayLike, alpha: ArrayLike, /) -> Array:
        """Logarithm of the density, -inf where a share is negative or they do not add up to 1.

        Args:
            x: Shares along the first axis; the last one may be left out.
            alpha: The parameters, one for each share.

        Raises:
            ShapeError: There is another number of shares than of parameters.

        >>> gt.stats.dirichlet.logpdf(np.array([0.2, 0.3]), np.array([1.0, 2.0, 3.0]))
        np.float64(1.5040773967762737)
        """
        x, alpha = as_array(x), as_array(alpha)
        scale, powers, x, known = self._parts(x, alpha)
        value = scale + sum_of(xlogy(powers, x), axis=0)
        return unboxed(where(all_of(alpha > 0), where(known, value, -math.inf), math.nan))

    def pdf(self, x: ArrayLike, alpha: ArrayLike, /) -> Array:
        """The density; arguments as of `logpdf`.

        >>> gt.stats.dirichlet.pdf(np.array([0.2, 0.3, 0.5]), np.ones(3))
        np.float64(2.0)
        """
        x, alpha = as_array(x), as_array(alpha)
        scale, powers, x, known = self._parts(x, alpha)
        value = _product_of_powers(x, powers, scale, 0)
        return unboxed(where(all_of(alpha > 0), where(known, value, 0.0), math.nan))

    @staticmethod
    def _parts(x: Any, alpha: Any) -> tuple[Any, Any, Any, Any]:
        """The logarithm of the constant, powers, all shares, and where these are shares."""
        if x.shape[0] + 1 == alpha.shape[0]:
            x = concatenate([x, 1 - sum_of(x, axis=0, keepdims=True)])
        if x.shape[0] != alpha.shape[0]:
            raise ShapeError(
                f"dirichlet: came x of shape {x.shape} and alpha of shape {alpha.shape}; needed "
                "as many shares along the first axis, or one less"
            )
        known = all_of(x >= 0, axis=0) & (abs(sum_of(x, axis=0) - 1) < 1e-8)
        powers = reshape(alpha - 1, (-1,) + (1,) * (x.ndim - 1))
        scale = lgamma(sum_of(alpha)) - sum_of(lgamma(alpha))
        return scale, powers, where(known, x, 0.5), known


def _product_of_powers(x: Any, powers: Any, log_scale: Any, axis: int) -> Any:
    """exp(log_scale)·Π xᵢ^kᵢ, with its derivatives where elements are 0 and logarithms infinite."""
    zero = x == 0
    factors = where(zero, power_of_zero(x, powers, zero), 1.0)
    logs = xlogy(where(zero, 0.0, powers), where(zero, 1.0, x))
    return prod(factors, axis=axis) * exp(log_scale + sum_of(logs, axis=axis))


class Multinomial:
    """The multinomial distribution, differentiable in its probabilities.

    >>> gt.stats.multinomial.logpmf(np.array([1, 1]), 2, np.array([0.5, 0.5]))
    np.float64(-0.6931471805599453)
    """

    def logpmf(self, x: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
        """Logarithm of the probability of counts, -inf if they do not add up to `n`.

        Args:
            x: Counts along the last axis.
            n: How many trials there are.
            p: The probability of each outcome, along the last axis. Its last one is taken as given:
                the gradient is that of independent parameters.

        >>> gt.stats.multinomial.logpmf(np.array([1, 2]), 2, np.array([0.5, 0.5]))
        np.float64(-inf)
        """
        counts, p, ways, known = self._parts(x, n, p)
        return unboxed(where(known, ways + sum_of(xlogy(counts, p), axis=-1), -math.inf))

    def pmf(self, x: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
        """The probability of counts; arguments as of `logpmf`.

        >>> gt.stats.multinomial.pmf(np.array([1, 1]), 2, np.array([0.5, 0.5]))
        np.float64(0.5)
        """
        counts, p, ways, known = self._parts(x, n, p)
        return unboxed(where(known, _product_of_powers(p, counts, ways, -1), 0.0))

    @staticmethod
    def _parts(x: Any, n: Any, p: Any) -> tuple[Any, Any, Any, Any]:
        """Counts, probabilities, the logarithm of the number of ways, and where there are any."""
        x, p, n = stop_gradient(as_array(x)), as_array(p), as_array(n)
        whole = all_of((x >= 0) & (x == floor(x)), axis=-1)
        known = logical_and(whole, sum_of(x, axis=-1) == n)
        counts = abs(x) * 1.0
        ways = lgamma(n + 1.0) - sum_of(lgamma(counts + 1.0), axis=-1)
        return counts, p, ways, known


multivariate_normal = MultivariateNormal()
dirichlet = Dirichlet()
multinomial = Multinomial()
