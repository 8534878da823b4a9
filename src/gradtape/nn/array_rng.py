"""Random NumPy arrays for first values of parameters, scaled by the sizes of a layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import is_extended_float
from gradtape.errors import ArgumentError, DTypeError
from gradtape.locks import load
from gradtape.nn.fans import Fans, fans
from gradtape.nn.shaped_draws import orthogonal_from, truncated_from
from gradtape.ops.arguments import as_dtype, as_number, as_shape
from gradtape.ops.checks import check_between, check_least, check_positive
from gradtape.ops.generator import seed_in_force
from gradtape.ops.shared_options import options
from gradtape.typing import Shape

_WEIGHTS = {
    "shape": "The shape of the weights.",
    "outputs_first": "Whether the first two axes are outputs and inputs; see the class.",
}


class ArrayRng:
    """Random NumPy arrays from a seed, for the first values of parameters.

    The same seed and the same calls give the same numbers, with the same version of NumPy. Numbers
    of dtypes narrower than float32 are drawn in float32 and rounded.

    Of a matrix of weights, the first axis is inputs and the second outputs, as in `x @ w`; of a
    convolution's kernel, with three axes or more, the first axis is outputs and the second inputs,
    as `gt.nn.conv2d` takes it. `outputs_first=True` is for matrices as `gt.nn.linear` takes them,
    `outputs_first=False` for kernels of Keras.

    Args:
        seed: A non-negative integer or a sequence of them; if not given, it is drawn from the block
            of `gt.deterministic` around, or from the operating system.
        dtype: The dtype of the arrays, a floating-point one.

    Raises:
        ArgumentError: The seed is something else.
        DTypeError: The dtype is not a floating-point one.

    >>> rng = gt.nn.init.ArrayRng(seed=0, dtype=gt.float32)
    >>> w = rng.glorot_uniform((20, 16))
    >>> w.shape, w.dtype, bool(abs(w).max() <= (6 / 36) ** 0.5)
    ((20, 16), dtype('float32'), True)
    """

    def __init__(self, seed: int | Sequence[int] | None = None, dtype: Any = np.float64) -> None:
        self.dtype = as_dtype(dtype, "ArrayRng")
        if self.dtype.kind != "f" and not is_extended_float(self.dtype):
            raise DTypeError(f"ArrayRng: got dtype {self.dtype}, expected one of floats")
        try:
            chosen = seed_in_force("ArrayRng") if seed is None else seed
            self._rng = load("numpy.random").default_rng(chosen)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"ArrayRng: got seed={seed!r}, expected a non-negative integer or a sequence of "
                "them"
            ) from error
        # NumPy draws in these two.
        self._drawn = np.dtype(np.float64 if self.dtype.itemsize >= 8 else np.float32)

    def __repr__(self) -> str:
        return f"ArrayRng(dtype={self.dtype})"

    # ---- scaled by the sizes of a layer ----------------------------------------------------

    @options(_WEIGHTS)
    def glorot_uniform(self, shape: Shape, *, outputs_first: bool | None = None) -> Any:
        """Draw from the uniform distribution of Glorot and Bengio (2010): ±√(6/(in + out)).

        Returns:
            A new array.

        >>> gt.nn.init.ArrayRng(0).glorot_uniform((2, 3)).shape
        (2, 3)
        """
        size, sizes = self._sizes(shape, "glorot_uniform", outputs_first)
        return self._spread(size, math.sqrt(6 / max(sizes.inputs + sizes.outputs, 1)))

    @options(_WEIGHTS)
    def glorot_normal(self, shape: Shape, *, outputs_first: bool | None = None) -> Any:
        """Draw from the normal distribution of Glorot and Bengio (2010): σ = √(2/(in + out)).

        Returns:
            A new array.

        >>> gt.nn.init.ArrayRng(0).glorot_normal((2, 3)).shape
        (2, 3)
        """
        size, sizes = self._sizes(shape, "glorot_normal", outputs_first)
        return self._normal(size, 0.0, math.sqrt(2 / max(sizes.inputs + sizes.outputs, 1)))

    @options(_WEIGHTS)
    def he_uniform(self, shape: Shape, *, outputs_first: bool | None = None) -> Any:
        """Draw from the uniform distribution of He et al. (2015), for ReLU: ±√(6/in).

        Returns:
            A new array.

        >>> gt.nn.init.ArrayRng(0).he_uniform((32, 8, 3, 3)).shape
        (32, 8, 3, 3)
        """
        size, sizes = self._sizes(shape, "he_uniform", outputs_first)
        return self._spread(size, math.sqrt(6 / max(sizes.inputs, 1)))

    @options(_WEIGHTS)
    def he_normal(self, shape: Shape, *, outputs_first: bool | None = None) -> Any:
        """Draw from the normal distribution of He et al. (2015), for ReLU: σ = √(2/in).

        Returns:
            A new array.

        >>> gt.nn.init.ArrayRng(0).he_normal((32, 8, 3, 3)).shape
        (32, 8, 3, 3)
        """
        size, sizes = self._sizes(shape, "he_normal", outputs_first)
        return self._normal(size, 0.0, math.sqrt(2 / max(sizes.inputs, 1)))

    def orthogonal(
        self, shape: Shape, gain: float = 1.0, *, outputs_first: bool | None = None
    ) -> Any:
        """Draw a matrix with orthonormal rows or columns, whichever are fewer (Saxe et al., 2013).

        Args:
            shape: The shape of the weights, with two axes or more. Of a kernel, its sizes count as
                inputs.
            gain: What the matrix is multiplied by.
            outputs_first: Whether the first two axes are outputs and inputs; see the class.

        Returns:
            A new array.

        Raises:
            ArgumentError: There are less than two axes.

        >>> w = gt.nn.init.ArrayRng(0).orthogonal((4, 2))
        >>> np.allclose(w.T @ w, np.eye(2))
        True
        """
        size, gain = as_shape(shape, "orthogonal"), as_number(gain, "orthogonal", "gain")
        first = len(size) > 2 if outputs_first is None else outputs_first
        draw = self._rng.standard_normal
        return np.asarray(gain * orthogonal_from("orthogonal", draw, size, first), self.dtype)

    # ---- distributions ---------------------------------------------------------------------

    def standard_normal(self, shape: Shape) -> Any:
        """Draw normal numbers of mean 0 and standard deviation 1.

        Args:
            shape: The shape of the array.

        Returns:
            A new array.

        >>> gt.nn.init.ArrayRng(0).standard_normal(3).shape
        (3,)
        """
        return self._normal(as_shape(shape, "standard_normal"), 0.0, 1.0)

    def standard_uniform(self, shape: Shape) -> Any:
        """Draw numbers from 0 to 1, all equally likely.

        Args:
            shape: The shape of the array.

        Returns:
            A new array.

        >>> gt.nn.init.ArrayRng(0).standard_uniform(3).shape
        (3,)
        """
        return self._drawn_by(self._rng.random, as_shape(shape, "standard_uniform"))

    def random_normal(self, shape: Shape, mean: float, std: float) -> Any:
        """Draw normal numbers.

        Args:
            shape: The shape of the array.
            mean: Their mean.
            std: Their standard deviation.

        Returns:
            A new array.

        Raises:
            ArgumentError: The standard deviation is negative.

        >>> gt.nn.init.ArrayRng(0).random_normal(3, mean=1.0, std=0.0)
        array([1., 1., 1.])
        """
        size, name = as_shape(shape, "random_normal"), "random_normal"
        mean, std = as_number(mean, name, "mean"), as_number(std, name, "std")
        check_least(name, 0, std=std)
        return self._normal(size, mean, std)

    def truncated_normal(
        self, shape: Shape, mean: float = 0.0, std: float = 1.0, lo: float = -2.0, hi: float = 2.0
    ) -> Any:
        """Draw normal numbers of an interval: those outside are left out.

        Args:
            shape: The shape of the array.
            mean: The mean of the normal distribution.
            std: Its standard deviation.
            lo: The least number.
            hi: The greatest one, which rounding may reach.

        Returns:
            A new array.

        Raises:
            ArgumentError: The standard deviation is not positive, or the interval is empty or too
                far from the mean.

        >>> x = gt.nn.init.ArrayRng(0).truncated_normal(1000, lo=-1.0, hi=1.0)
        >>> bool((abs(x) <= 1).all())
        True
        """
        size, name = as_shape(shape, "truncated_normal"), "truncated_normal"
        given = {"mean": mean, "std": std, "lo": lo, "hi": hi}
        numbers = [as_number(value, name, what) for what, value in given.items()]
        made = truncated_from(name, lambda: self._rng.random(size), *numbers)
        return np.asarray(made, self.dtype)

    def random_uniform(self, shape: Shape, lo: float, hi: float) -> Any:
        """Draw numbers between two others, all equally likely.

        Args:
            shape: The shape of the array.
            lo: The least number.
            hi: The greatest one, which rounding may reach.

        Returns:
            A new array.

        Raises:
            ArgumentError: `hi` is less than `lo`.

        >>> gt.nn.init.ArrayRng(0).random_uniform(3, 2.0, 2.0)
        array([2., 2., 2.])
        """
        size, name = as_shape(shape, "random_uniform"), "random_uniform"
        lo, hi = as_number(lo, name, "lo"), as_number(hi, name, "hi")
        check_least(name, lo, hi=hi)
        return self._drawn_by(self._rng.random, size, lambda x: lo + (hi - lo) * x)

    def bernoulli(self, shape: Shape, p: float) -> Any:
        """Draw ones with a given probability, and zeros otherwise.

        Args:
            shape: The shape of the array.
            p: The probability of a one.

        Returns:
            A new array of the dtype of the others.

        Raises:
            ArgumentError: The probability is not in [0, 1].

        >>> gt.nn.init.ArrayRng(0).bernoulli(3, 1.0)
        array([1., 1., 1.])
        """
        size, p = as_shape(shape, "bernoulli"), as_number(p, "bernoulli", "p")
        check_between("bernoulli", 0, 1, p=p)
        return self._drawn_by(self._rng.random, size, lambda x: x < p)

    def exponential(self, shape: Shape, rate: float = 1.0) -> Any:
        """Draw times between events that come at a rate: their mean is 1/rate.

        Args:
            shape: The shape of the array.
            rate: The rate.

        Returns:
            A new array.

        Raises:
            ArgumentError: The rate is not positive.

        >>> bool(gt.nn.init.ArrayRng(0).exponential(3, 2.0).min() > 0)
        True
        """
        size, rate = as_shape(shape, "exponential"), as_number(rate, "exponential", "rate")
        check_positive("exponential", rate=rate)
        return self._drawn_by(self._rng.standard_exponential, size, lambda x: x / rate)

    def gamma(self, shape: Shape, concentration: float, scale: float = 1.0) -> Any:
        """Draw from a gamma distribution, of mean concentration·scale.

        Args:
            shape: The shape of the array.
            concentration: The parameter called k, α or "shape".
            scale: What numbers are multiplied by.

        Returns:
            A new array.

        Raises:
            ArgumentError: A parameter is not positive.

        >>> bool(gt.nn.init.ArrayRng(0).gamma(3, 2.0).min() > 0)
        True
        """
        size, name = as_shape(shape, "gamma"), "gamma"
        concentration = as_number(concentration, name, "concentration")
        scale = as_number(scale, name, "scale")
        check_positive(name, concentration=concentration, scale=scale)

        def draw(*, size: Any, dtype: Any) -> Any:
            return self._rng.standard_gamma(concentration, size=size, dtype=dtype)

        return self._drawn_by(draw, size, lambda x: scale * x)

    def log_normal(self, shape: Shape, mean: float = 0.0, std: float = 1.0) -> Any:
        """Draw numbers whose logarithms are normal.

        Args:
            shape: The shape of the array.
            mean: The mean of the logarithms.
            std: Their standard deviation.

        Returns:
            A new array.

        Raises:
            ArgumentError: The standard deviation is negative.

        >>> gt.nn.init.ArrayRng(0).log_normal(3, 0.0, 0.0)
        array([1., 1., 1.])
        """
        size, name = as_shape(shape, "log_normal"), "log_normal"
        mean, std = as_number(mean, name, "mean"), as_number(std, name, "std")
        check_least(name, 0, std=std)
        return self._drawn_by(self._rng.standard_normal, size, lambda x: np.exp(mean + std * x))

    def permutation(self, x: Any) -> Any:
        """Return the integers below a number, or the rows of an array, in random order.

        Args:
            x: The number, or the array.

        Returns:
            A new array.

        Raises:
            ArgumentError: The number is negative, or the array has no axes.

        >>> sorted(gt.nn.init.ArrayRng(0).permutation(4).tolist())
        [0, 1, 2, 3]
        """
        if isinstance(x, int | np.integer) and not isinstance(x, bool) and x >= 0:
            return self._rng.permutation(int(x))
        array = np.asarray(x)
        if not array.ndim:
            raise ArgumentError(f"permutation: got {x!r}, expected an integer >= 0 or an array")
        return self._rng.permutation(array)

    # ---- how they are drawn ----------------------------------------------------------------

    def _sizes(
        self, shape: Shape, name: str, outputs_first: bool | None
    ) -> tuple[tuple[int, ...], Fans]:
        size = as_shape(shape, name)
        return size, fans(size, outputs_first)

    def _spread(self, size: tuple[int, ...], limit: float) -> Any:
        return self._drawn_by(self._rng.random, size, lambda x: limit * (2 * x - 1))

    def _normal(self, size: tuple[int, ...], mean: float, std: float) -> Any:
        return self._drawn_by(self._rng.standard_normal, size, lambda x: mean + std * x)

    def _drawn_by(
        self,
        draw: Callable[..., Any],
        size: tuple[int, ...],
        change: Callable[[Any], Any] = lambda x: x,
    ) -> Any:
        """Numbers drawn by NumPy, changed, and cast to the dtype."""
        # NumPy turns arrays without axes into numbers.
        return np.asarray(change(draw(size=size, dtype=self._drawn)), self.dtype)
