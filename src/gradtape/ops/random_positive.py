"""Random positive numbers: exponential, log-normal, gamma; and beta, Dirichlet, made of gamma ones.

A gamma number is drawn by rejection, which has no useful derivative by itself. With P the
distribution function, P(a, x) is uniform whatever `a` is, so x moves with `a` such that it stays
the same: dx/da = −(∂P/∂a)/(∂P/∂x). Expectations of draws have the right derivatives that way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import move_batch_axis
from gradtape.core.call import call
from gradtape.core.define import general
from gradtape.core.op import Op
from gradtape.errors import ArgumentError
from gradtape.ops.activation import sigmoid
from gradtape.ops.arguments import as_array, as_shape, weak_or_array
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_axes
from gradtape.ops.erf import scipy_special
from gradtape.ops.exponential import exp, log1p
from gradtape.ops.generator import Generator, Key, Words, source_of
from gradtape.ops.random import (
    as_floating,
    draw_for,
    drawn,
    drawn_dtype,
    drawn_shape,
    normal,
    random_uniform,
)
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to
from gradtape.ops.shared_options import options
from gradtape.ops.softmax import softmax
from gradtape.ops.special.gamma import digamma
from gradtape.ops.special.incomplete_gamma import gamma_density, gammainc_slope, inverse_by_shape
from gradtape.typing import Array, ArrayLike, Shape

# ---- draws of elements with parameters ----------------------------------------------------------

# Words of an element: whole steps of the counter, so that it is known where those of the next are.
WORDS_EACH = 8
# Elements are drawn in stretches whose words stay in the cache.
_STRETCH = 1 << 11


def elementwise_numbers(
    draw: Callable[[Any, Any, Any], Any], xp: Any, x: Any, shape: Any, key: Key, offset: int
) -> Any:
    """Numbers by the parameter `x` of each element, in float64.

    Args:
        draw: `draw(xp, x, fractions)` makes them of the parameters of a stretch of elements and
            `WORDS_EACH` rows of fractions in [0, 1), each a multiple of 2⁻⁵³.
        xp: The module of arrays.
        x: The parameters; axes before those of `shape` are batches that get the same words.
        shape: The shape of a draw.
        key: Which stream.
        offset: Where in the stream.
    """
    count = math.prod(shape)
    flat = xp.asarray(x, np.float64).reshape(-1, count) if count else xp.empty((1, 0))
    out = xp.empty(flat.shape)
    words = Words(key, offset)
    for start in range(0, count, _STRETCH):
        part = slice(start, min(start + _STRETCH, count))
        found = words(WORDS_EACH * (part.stop - start)).reshape(-1, WORDS_EACH)
        fractions = xp.asarray((found >> 11) * 0.5**53).T
        out[:, part] = draw(xp, flat[:, part], fractions)
    return out.reshape(x.shape)


def batch_elementwise_numbers(op: Op, axes: Any, args: Any, params: Any) -> tuple[Any, int]:
    """The batching rule of ops of `elementwise_numbers`."""
    # In compiled code the state of the generator comes before the parameter.
    *state, x = args
    return call(op, (*state, move_batch_axis(x, axes[-1])), params), 0


# ---- gamma --------------------------------------------------------------------------------------


def _gamma_fractions(xp: Any, a: Any, fractions: Any) -> tuple[Any, Any]:
    """Gamma numbers x of shape b ≥ 1, and the numbers y ≤ 0 with x·eʸ of shape `a`."""
    low = a < 1
    b = xp.where(low, a + 1, a)
    # Marsaglia and Tsang: d·(1 + c·z)³ with z normal, accepted with probability > 0.95.
    d = b - 1 / 3
    c = 1 / xp.sqrt(9 * d)
    radius = xp.sqrt(-2 * xp.log(1 - fractions[0]))
    angle = fractions[1] * (2 * math.pi)
    x, found = xp.zeros(a.shape), xp.zeros(a.shape, bool)
    for z, chance in (
        (radius * xp.cos(angle), fractions[2]),
        (radius * xp.sin(angle), fractions[3]),
    ):
        root = 1 + c * z
        v = xp.where(root > 0, root, 1.0) ** 3
        limit = 0.5 * z * z + d * (1 - v + xp.log(v))
        accepted = (root > 0) & (xp.log(1 - chance) < limit) & ~found
        x, found = xp.where(accepted, d * v, x), found | accepted
    if not found.all():
        # The few that are left, by the inverse of the distribution function: exact, but slow.
        special = scipy_special(xp)
        rest = ~found
        p = xp.broadcast_to(fractions[4] + 0.5**54, a.shape)[rest]
        lower, upper = special.gammaincinv(b[rest], p), special.gammainccinv(b[rest], 1 - p)
        x[rest] = xp.where(p < 0.5, lower, upper)
    # x·u^(1/a) has shape a if x has shape a + 1.
    return x, xp.where(low, xp.log(1 - fractions[5]) / a, 0.0)


def _gamma(xp: Any, a: Any, fractions: Any) -> Any:
    x, power = _gamma_fractions(xp, a, fractions)
    return x * xp.exp(power)


def _log_gamma(xp: Any, a: Any, fractions: Any) -> Any:
    x, power = _gamma_fractions(xp, a, fractions)
    return xp.log(x) + power


def _gamma_forward(xp: Any, a: Any, *, shape: Any, log: bool, key: Key, offset: int) -> Any:
    if not xp.all((a > 0) & (a < np.inf)):
        raise ArgumentError("gamma: got a shape parameter that is not a finite number > 0")
    made = elementwise_numbers(_log_gamma if log else _gamma, xp, a, shape, key, offset)
    return made.astype(a.dtype)


# Below, xᵃ/Γ(a + 1) is the distribution function to all digits.
_TINY = -40.0


def _slope_of_log(log_x: Any, a: Any) -> Any:
    """d(log x)/da = −(∂P/∂a)/(x·p(a, x)), with x·p(a, x) = a·p(a + 1, x)."""
    tiny = log_x < _TINY
    x = exp(where(tiny, 0.0, log_x))
    usual = -gammainc_slope(a, x, order=1) / (a * gamma_density(a + 1, x))
    # With P = xᵃ/Γ(a + 1): ∂P/∂a = (log x − ψ(a + 1))·P
    return where(tiny, (digamma(a + 1) - log_x) / a, usual)


def _gamma_by_a(ct: Any, out: Any, a: Any, *, log: bool, **_draw: Any) -> Any:
    return ct * _slope_of_log(out, a) if log else inverse_by_shape(ct, out, a)


random_gamma = general(
    "random_gamma",
    _gamma_forward,
    infer=lambda a, **_params: Aval(a.shape, a.dtype),
    vjps=(_gamma_by_a,),
    jvp=lambda tangents, out, a, **params: _gamma_by_a(tangents[0], out, a, **params),
    batch=batch_elementwise_numbers,
    effect="random",
)


def _draw_gamma(
    name: str,
    a: Any,
    shape: Shape | None,
    dtype: Any,
    generator: Generator | None,
    *near: Any,
    log: bool,
) -> Any:
    """Gamma numbers or their logarithms, one for each element of `a` in the shape."""
    sizes = drawn_shape(shape, name, a)
    dtype = as_floating(drawn_dtype(dtype, name, a), name)
    a = broadcast_to(astype(as_array(a), dtype, copy=False), sizes)
    source, count = source_of(generator, name), WORDS_EACH * math.prod(sizes)
    return drawn(random_gamma, source, count, a, near=near, shape=sizes, log=log)


# ---- public functions ---------------------------------------------------------------------------

_DRAWING = {
    "shape": "The sizes; those of the parameters together if not given.",
    "dtype": "Its dtype; the floating dtype of the parameters if not given.",
    "generator": "Where to draw from; the default generator if not given.",
}
_BAD_PARAMETERS = {
    "ShapeError": "The parameters do not broadcast to the shape.",
    "DTypeError": "The dtype is not floating, or the parameters are not real.",
}
_NOT_POSITIVE = {"ArgumentError": "A parameter of the shape is not a finite number > 0."}


@options(_DRAWING, raises=_BAD_PARAMETERS)
def exponential(
    scale: ArrayLike = 1.0,
    shape: Shape | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Array:
    """Draw numbers from exponential distributions; differentiable in the scale.

    Args:
        scale: The mean or means, one over the rate.

    >>> gt.random.exponential(2.0, (2, 3)).shape
    (2, 3)
    """
    scale = weak_or_array(scale)
    fractions = draw_for("exponential", random_uniform, shape, dtype, generator, scale)
    return astype(-log1p(-fractions) * scale, fractions.dtype, copy=False)


@options(_DRAWING, raises=_BAD_PARAMETERS)
def log_normal(
    mean: ArrayLike = 0.0,
    sigma: ArrayLike = 1.0,
    shape: Shape | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Array:
    """Draw numbers whose logarithms are normal; differentiable in both parameters.

    Args:
        mean: The mean or means of the logarithms.
        sigma: Their standard deviation or deviations.

    >>> gt.random.log_normal(0.0, 0.5, (2, 3)).shape
    (2, 3)
    """
    return exp(normal(mean, sigma, shape, dtype=dtype, generator=generator))


@options(_DRAWING, raises=_BAD_PARAMETERS | _NOT_POSITIVE)
def gamma(
    a: ArrayLike,
    scale: ArrayLike = 1.0,
    shape: Shape | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Array:
    """Draw numbers from gamma distributions; differentiable in both parameters.

    Args:
        a: The parameter or parameters of the shape, also called concentration.
        scale: The scale or scales, one over the rate.

    >>> a = np.array([0.5, 2.0, 30.0])
    >>> grad = gt.grad(lambda a: gt.mean(gt.random.gamma(a, shape=(10000, 3))))(a)
    >>> bool(gt.all(abs(3 * grad - 1) < 0.1))  # the mean of the distribution is a
    True
    """
    a, scale = weak_or_array(a), weak_or_array(scale)
    sizes, dtype = drawn_shape(shape, "gamma", a, scale), drawn_dtype(dtype, "gamma", a, scale)
    made = _draw_gamma("gamma", a, sizes, dtype, generator, scale, log=False)
    return astype(made * scale, made.dtype, copy=False)


@options(_DRAWING, raises=_BAD_PARAMETERS | _NOT_POSITIVE)
def beta(
    a: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Array:
    """Draw numbers from beta distributions; differentiable in both parameters.

    Args:
        a: The parameter or parameters that draw towards 1.
        b: The parameter or parameters that draw towards 0.

    >>> x = gt.random.beta(2.0, 3.0, 1000)
    >>> bool(gt.all((x > 0) & (x < 1)))
    True
    """
    a, b = weak_or_array(a), weak_or_array(b)
    sizes, dtype = drawn_shape(shape, "beta", a, b), drawn_dtype(dtype, "beta", a, b)
    # X/(X + Y) with X and Y gamma numbers, by their logarithms: both may be too small.
    log_x, log_y = (_draw_gamma("beta", p, sizes, dtype, generator, a, b, log=True) for p in (a, b))
    return sigmoid(log_x - log_y)


@options(_DRAWING, raises=_BAD_PARAMETERS | _NOT_POSITIVE)
def dirichlet(
    alpha: ArrayLike,
    shape: Shape | None = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Array:
    """Draw vectors of positive numbers whose sum is 1; differentiable in the parameters.

    Args:
        alpha: The parameters, along the last axis.
        shape: The sizes before the last axis.

    >>> x = gt.random.dirichlet(np.array([1.0, 2.0, 3.0]), 5)
    >>> x.shape, bool(gt.all(abs(gt.sum(x, axis=-1) - 1) < 1e-12))
    ((5, 3), True)
    """
    alpha = as_array(alpha)
    check_axes("dirichlet", alpha, least=1, instead="give one parameter for each element")
    sizes = None if shape is None else (*as_shape(shape, "dirichlet"), alpha.shape[-1])
    return softmax(_draw_gamma("dirichlet", alpha, sizes, dtype, generator, log=True), axis=-1)
