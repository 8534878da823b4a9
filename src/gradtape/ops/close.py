"""Comparing whole arrays: isclose element by element, and answers that are one truth value.

They look at values only, so that tracked tensors may be compared as well.
"""

from __future__ import annotations

from gradtape.core.define import broadcast_sizes, elementwise_op
from gradtape.errors import ShapeError
from gradtape.ops import lowered
from gradtape.ops.arguments import as_array, as_number
from gradtape.ops.comparison import equal, isnan
from gradtape.ops.which import all as all_of
from gradtape.typing import Array, ArrayLike

_isclose = elementwise_op(
    "isclose",
    lambda xp, x, y, rtol, atol, equal_nan: xp.isclose(x, y, rtol, atol, equal_nan),
    lower=lowered.isclose,
)


def isclose(
    x: ArrayLike,
    y: ArrayLike,
    /,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether elements are equal up to a tolerance: |x - y| <= atol + rtol·|y|.

    Args:
        x: What to compare.
        y: What to compare it with.
        rtol: The tolerance relative to `y`.
        atol: The tolerance added to that.
        equal_nan: Whether NaN is close to NaN.

    Returns:
        An array of booleans.

    >>> gt.isclose(np.array([1.0, 2.0]), np.array([1.0 + 1e-9, 2.1]))
    array([ True, False])
    """
    rtol, atol = as_number(rtol, "isclose", "rtol"), as_number(atol, "isclose", "atol")
    return _isclose(x, y, rtol=rtol, atol=atol, equal_nan=bool(equal_nan))


def allclose(
    x: ArrayLike,
    y: ArrayLike,
    /,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Whether all elements are equal up to a tolerance; options as of `isclose`.

    Returns:
        One truth value, also for tensors.

    >>> gt.allclose(gt.ones(2, requires_grad=True), np.array([1.0, 1.0 + 1e-9]))
    True
    """
    return bool(all_of(isclose(x, y, rtol, atol, equal_nan)))


def array_equal(x: ArrayLike, y: ArrayLike, /, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements.

    Args:
        x: What to compare.
        y: What to compare it with.
        equal_nan: Whether NaN equals NaN.

    Returns:
        One truth value, also for tensors.

    >>> gt.array_equal(gt.ones(2), [1.0, 1.0])
    True
    """
    x, y = as_array(x), as_array(y)
    if x.shape != y.shape:
        return False
    same = equal(x, y)
    return bool(all_of(same | (isnan(x) & isnan(y)) if equal_nan else same))


def array_equiv(x: ArrayLike, y: ArrayLike, /) -> bool:
    """Whether two arrays broadcast to the same elements.

    Returns:
        One truth value, also for tensors.

    >>> gt.array_equiv(gt.ones((2, 2)), [1.0, 1.0])
    True
    """
    x, y = as_array(x), as_array(y)
    try:
        broadcast_sizes(x.shape, y.shape)
    except ShapeError:
        return False
    return bool(all_of(equal(x, y)))
