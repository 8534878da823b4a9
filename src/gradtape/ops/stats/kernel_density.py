"""Density estimates by Gaussian kernels, differentiable in points, observations and bandwidth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError, UnsupportedError
from gradtape.ops.arguments import as_array
from gradtape.ops.arrays.covariance import cov
from gradtape.ops.diagonal import diagonal
from gradtape.ops.erf import ndtr
from gradtape.ops.exponential import exp, log, sqrt
from gradtape.ops.linalg.cholesky import cholesky
from gradtape.ops.linalg.solve import inv
from gradtape.ops.linalg.triangular import solve_triangular
from gradtape.ops.reduce import floats, sum as sum_over
from gradtape.ops.shape import reshape
from gradtape.ops.special.functions import logsumexp
from gradtape.typing import Array, ArrayLike


class gaussian_kde:  # noqa: N801 - SciPy's name
    """An estimate of a density: the mean of normal densities around observations.

    Args:
        dataset: The observations: numbers, or vectors in the columns of a matrix.
        bw_method: How wide the kernels are, as a share of the spread of the observations: "scott",
            "silverman", a number, or a function of the estimate.
        weights: How much each observation counts.

    Attributes:
        d: The number of dimensions.
        n: The number of observations.
        neff: How many observations of equal weight tell as much.
        factor: The share of the spread.
        covariance: The covariance of the kernels.

    >>> from gradtape.scipy.stats import gaussian_kde
    >>> gt.grad(lambda x: gaussian_kde(np.array([0.0, 1.0, 2.0])).logpdf(x)[0])(np.array([1.5]))
    array([-0.2229589])
    """

    holds_tensors = True

    def __init__(
        self, dataset: ArrayLike, bw_method: Any = None, weights: ArrayLike = None
    ) -> None:
        self.dataset = _matrix(dataset)
        self.d, self.n = self.dataset.shape
        if self.n < 2 or self.d > self.n:
            raise ShapeError(
                f"gaussian_kde: got {self.n} observations of dimension {self.d}, expected at least "
                "two, and no more dimensions than observations: each column is one"
            )
        self._given = None if weights is None else _shares(weights, self.n)
        self.weights = np.full(self.n, 1 / self.n) if self._given is None else self._given
        self.neff = self.n if self._given is None else 1 / sum_over(self.weights**2)
        self.set_bandwidth(bw_method)

    @classmethod
    def of_scipys(cls, theirs: Any) -> gaussian_kde:
        """The same estimate, from that of SciPy."""
        own = cls(theirs.dataset, theirs.factor, theirs.weights)
        own.covariance = theirs.covariance
        return own

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Set how wide the kernels are; arguments as of the class.

        Raises:
            ArgumentError: There is no such method.
        """
        methods = {None: self.scotts_factor, "scott": self.scotts_factor}
        methods["silverman"] = self.silverman_factor
        if callable(bw_method):
            self.factor = bw_method(self)
        elif bw_method is None or isinstance(bw_method, str):
            if bw_method not in methods:
                raise ArgumentError(
                    f"gaussian_kde: got bw_method={bw_method!r}, expected 'scott', 'silverman', a "
                    "number or a function"
                )
            self.factor = methods[bw_method]()
        else:
            self.factor = bw_method
        spread = cov(self.dataset, aweights=self._given)
        self.covariance = reshape(spread, (self.d, self.d)) * self.factor**2

    def scotts_factor(self) -> Any:
        """The bandwidth by the rule of Scott: neff^(−1/(d + 4))."""
        return self.neff ** (-1.0 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """The bandwidth by the rule of Silverman."""
        return (self.neff * (self.d + 2.0) / 4.0) ** (-1.0 / (self.d + 4))

    @property
    def inv_cov(self) -> Array:
        """The inverse of the covariance of the kernels."""
        return inv(self.covariance)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at some points.

        Args:
            x: The points: numbers, or vectors in the columns of a matrix.

        Raises:
            ShapeError: The points have another dimension.
        """
        points = _matrix(x)
        if points.shape[0] != self.d and points.shape == (1, self.d):
            points = reshape(points, (self.d, 1))
        if points.shape[0] != self.d:
            raise ShapeError(
                f"gaussian_kde: got points of dimension {points.shape[0]}, expected {self.d}"
            )
        root = cholesky(self.covariance)
        to = solve_triangular(root, points, lower=True)
        of = solve_triangular(root, self.dataset, lower=True)
        away = reshape(to, (self.d, -1, 1)) - reshape(of, (self.d, 1, -1))
        energy = 0.5 * sum_over(away * away, axis=0)
        scale = sum_over(log(diagonal(root))) + 0.5 * self.d * math.log(2 * math.pi)
        return logsumexp(-energy, axis=1, b=self.weights) - scale

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at some points; arguments as of `logpdf`."""
        return exp(self.logpdf(points))

    def pdf(self, x: ArrayLike) -> Array:
        """The density at some points; arguments as of `logpdf`."""
        return self.evaluate(x)

    def __call__(self, points: ArrayLike) -> Array:
        """The density at some points; arguments as of `logpdf`."""
        return self.evaluate(points)

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability between two bounds, in one dimension.

        Args:
            low: The lower bound.
            high: The upper bound.

        Raises:
            ShapeError: There are several dimensions.
        """
        if self.d != 1:
            raise ShapeError(f"integrate_box_1d: got {self.d} dimensions, expected 1")
        spread = sqrt(self.covariance[0, 0])
        below, above = ((as_array(end) - self.dataset[0]) / spread for end in (low, high))
        return sum_over(self.weights * (ndtr(above) - ndtr(below)))

    def resample(self, *_args: Any, **_kwds: Any) -> Array:
        """Refuse: draw from SciPy's estimate of `t.detach().numpy()`.

        Raises:
            UnsupportedError: In any case.
        """
        raise UnsupportedError(
            "gaussian_kde: resample got a tensor, expected arrays; use scipy.stats.gaussian_kde on "
            "t.detach().numpy() to draw without gradient"
        )


def _matrix(x: Any) -> Any:
    x = floats(as_array(x))
    if len(x.shape) > 2:
        raise ShapeError(f"gaussian_kde: got shape {x.shape}, expected at most two axes")
    return x if len(x.shape) == 2 else reshape(x, (1, -1))


def _shares(weights: Any, n: int) -> Any:
    weights = floats(as_array(weights))
    if weights.shape != (n,):
        raise ShapeError(f"gaussian_kde: got weights of shape {weights.shape}, expected ({n},)")
    return weights / sum_over(weights)
