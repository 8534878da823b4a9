"""Ops that leave values as they are and change the derivative that passes through them."""

from __future__ import annotations

from typing import Any

from gradtape.core import scalar
from gradtape.core.define import elementwise_op
from gradtape.core.op import Facts, Zero
from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.typing import Array, ArrayLike


def _unchanged(xp: Any, x: Any, factor: Any) -> Any:
    return xp.positive(xp.broadcast_arrays(x, factor)[0] if xp.ndim(factor) else x)


# The derivative is said to be that of factor·x.
_scale_gradient = elementwise_op(
    "scale_gradient",
    _unchanged,
    lambda ct, _out, _x, factor: ct * factor,
    Zero("the value does not depend on the factor"),
    facts=Facts(carries=(0,)),
    lower=lambda x, _factor: scalar.positive(x),
)


def scale_gradient(x: ArrayLike, /, factor: ArrayLike) -> Array:
    """The same value, whose derivatives are multiplied by a factor: gradients, and tangents too.

    Layers can learn at different rates so, or not at all, with the factor 0.

    Args:
        x: The value.
        factor: A number; it may be a tensor, and has no derivative itself.

    Raises:
        ShapeError: The factor is not one number.
        DTypeError: It is complex, and the value is real.

    >>> gt.grad(lambda x: gt.scale_gradient(x, 0.1) ** 2)(3.0).round(12)
    np.float64(0.6)
    """
    given = as_array(factor)
    if given.shape != ():
        raise ShapeError(
            f"scale_gradient: got a factor of shape {given.shape}, expected one number"
        )
    if given.dtype.kind == "c" and as_array(x).dtype.kind != "c":
        raise DTypeError(
            "scale_gradient: got a complex factor for a real value, expected a real one; the "
            "imaginary part of the derivatives would be lost"
        )
    return _scale_gradient(x, factor)


def reverse_gradient(x: ArrayLike, /, factor: ArrayLike = 1.0) -> Array:
    """The same value, whose derivatives change their sign: ascent and descent in one backward pass.

    What comes before is trained to make the loss larger, what comes after to make it smaller, as in
    domain-adversarial training.

    Args:
        x: The value.
        factor: A number that derivatives are multiplied by, besides −1.

    >>> gt.grad(lambda x: gt.reverse_gradient(x) ** 2)(3.0)
    np.float64(-6.0)
    """
    return scale_gradient(x, -as_array(factor))
