"""Conditions for a derivative to exist: an error in eager code, NaN in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.batching import batch_in_place
from gradtape.core.define import general
from gradtape.core.lowering import Elements
from gradtape.core.op import Facts, Zero
from gradtape.errors import NotDifferentiableError
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to
from gradtape.typing import Array, ArrayLike

# A function of a namespace and values that raises if they are not as required.
Test = Callable[[Any, Any], None]


def _granted_forward(xp: Any, holds: Any, message: str) -> Any:
    if not xp.all(holds):
        raise NotDifferentiableError(message)
    return holds


# Truth values unchanged. The native form cannot raise, so compiled code goes on.
_granted = general(
    "granted",
    _granted_forward,
    batch=batch_in_place,
    lower=Elements(lambda i, holds, message: holds(*i)),
)


def require(x: ArrayLike, holds: ArrayLike, message: str) -> Array:
    """`x` where a condition holds; elsewhere an error, or NaN in a compiled function.

    Rules use it for derivatives that exist only under a condition on values.

    Args:
        x: The values that exist under the condition.
        holds: Truth values that broadcast against `x`.
        message: Of the error: `op: got …, expected …; what to do`.

    Raises:
        NotDifferentiableError: The condition does not hold somewhere, and code is not compiled.

    >>> gt.ops.linalg.checks.require(np.array([1.0, 2.0]), np.array([True, True]), "never said")
    array([1., 2.])
    """
    return where(_granted(holds, message=message), x, np.nan)


def _verified_forward(xp: Any, x: Any, test: Test) -> Any:
    test(xp, x)
    return x.copy()


# d x = dx
_verified = general(
    "verified",
    _verified_forward,
    vjps=(lambda ct, _out, _x, test: ct,),
    self_adjoint=True,
    facts=Facts(reads="own"),
)


def verified(x: Any, test: Test) -> Any:
    """`x` unchanged, after a test that raises for wrong values, in compiled code, too.

    Functions made of others use it for conditions on values.

    Args:
        x: An array, or a stack of them.
        test: A function of a namespace and the values; the same function at every call.

    >>> def small(xp, x):
    ...     if xp.any(x > 1):
    ...         raise gt.errors.LinAlgError("too large")
    >>> gt.ops.linalg.checks.verified(np.array([2.0]), small)
    Traceback (most recent call last):
        ...
    gradtape.errors.LinAlgError: too large
    """
    return _verified(x, test=test)


# ---- derivatives that have none themselves ------------------------------------------------------


# The identity; its derivative is required to exist
_once = general(
    "once_differentiable",
    lambda xp, x, smooth, message: x,
    vjps=(
        lambda ct, _out, _x, smooth, message: require(ct, smooth, message),
        Zero("truth values are piecewise constant"),
    ),
    self_adjoint=True,
    lower=Elements(lambda i, x, smooth, message: x(*i)),
)


def once(x: Any, smooth: Any, message: str) -> Any:
    """`x` unchanged; its derivative exists only where a condition holds.

    Rules use it for results that are right, but must not be differentiated as they are computed:
    the mean over equal eigenvalues is their derivative, but its derivative is not their second one.

    Args:
        x: The result of a rule.
        smooth: Where it may be differentiated again; broadcasts to the shape of `x`.
        message: Of the error otherwise.

    >>> gt.ops.linalg.checks.once(np.array([1.0, 2.0]), np.array([True, False]), "only once")
    array([1., 2.])
    """
    return _once(x, broadcast_to(smooth, x.shape), message=message)
