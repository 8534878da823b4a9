"""Products of vectors with curvature matrices that are never formed: Gauss–Newton and Fisher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import containers
from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.reverse import grad, vjp
from gradtape.autodiff.transforms import check_tuples, jvp
from gradtape.core.aval import aval_of
from gradtape.core.deferrable import deferrable
from gradtape.errors import DTypeError, ShapeError


@deferrable
def gnvp(
    model: Callable[..., Any],
    loss: Callable[[Any], Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> Any:
    """The product of the Gauss–Newton matrix Jᵀ·H·J of `loss(model(*primals))` with a vector.

    J is the Jacobian of the model, and H the Hessian of the loss by the model's output. For a loss
    that is convex in the output the matrix has no negative eigenvalues, unlike the Hessian.

    Args:
        model: A function of the primals; returns arrays or nested containers.
        loss: A scalar function of what the model returns.
        primals: The arguments of the model, as a tuple.
        tangents: The vector, a tuple of the same structure.

    Returns:
        The product, in the form of the argument (a tuple for several arguments).

    Raises:
        ArgumentError: The primals or tangents are not a tuple.
        ShapeError: A tangent does not have the shape of its primal; or the loss is not a scalar.
        DTypeError: A primal is not floating.

    >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> w, v = np.array([1.0, 1.0]), np.array([1.0, 0.0])
    >>> gt.gnvp(lambda w: x @ w, lambda y: 0.5 * np.sum(y**2), (w,), (v,))  # xᵀx·v
    array([10., 14.])
    """
    _check("gnvp", primals, tangents)
    model, loss = as_function(model, "gnvp"), as_function(loss, "gnvp")
    out, change = jvp(model, primals, tangents)
    curved = jvp(grad(loss), (out,), (change,))[1]
    return _pulled(model, primals, curved)


@deferrable
def fvp(
    log_likelihoods: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> Any:
    """The product of the empirical Fisher matrix with a vector, without the matrix.

    The matrix is (1/n)·JᵀJ, with the Jacobian J of the log-likelihoods of n samples: the mean of
    the outer products of their gradients.

    Args:
        log_likelihoods: A function of the primals that returns one number per sample, as an array
            of one axis.
        primals: Its arguments, as a tuple.
        tangents: The vector, a tuple of the same structure.

    Returns:
        The product, in the form of the argument (a tuple for several arguments).

    Raises:
        ArgumentError: The primals or tangents are not a tuple.
        ShapeError: A tangent does not have the shape of its primal; or the function does not return
            one number per sample.
        DTypeError: A primal is not floating.

    >>> samples = np.array([1.0, 2.0, 3.0, 6.0])
    >>> gt.fvp(lambda mean: -0.5 * (samples - mean) ** 2, (2.0,), (1.0,))  # the mean of (s − 2)²
    np.float64(4.5)
    """
    _check("fvp", primals, tangents)
    function = as_function(log_likelihoods, "fvp")
    out, change = jvp(function, primals, tangents)
    leaves = containers.flatten(out)[0]
    avals = [aval_of(leaf) for leaf in leaves]
    if len(avals) != 1 or len(avals[0].shape) != 1 or not avals[0].shape[0]:
        raise ShapeError(
            f"fvp: the function returned {', '.join(map(str, avals)) or 'nothing'}, expected one "
            "number per sample, an array of one axis"
        )
    if avals[0].dtype.kind == "c":
        raise DTypeError(f"fvp: the function returned {avals[0]}, expected real log-likelihoods")
    count = avals[0].shape[0]
    return _pulled(function, primals, containers.map_leaves(lambda leaf: leaf / count, change))


def _check(name: str, primals: Sequence[Any], tangents: Sequence[Any]) -> None:
    check_tuples(name, primals=primals, tangents=tangents)
    if len(primals) != len(tangents):
        raise ShapeError(
            f"{name}: got {len(primals)} primals and {len(tangents)} tangents, expected one "
            "tangent per primal"
        )


def _pulled(function: Callable[..., Any], primals: Sequence[Any], ct: Any) -> Any:
    """A cotangent of the results of a function, pulled back to its arguments."""
    found = vjp(function, *primals)[1](ct)
    return found[0] if len(primals) == 1 else found
