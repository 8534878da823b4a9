"""Gradients of every sample of a batch: `vmap` of `grad`, with the axes that losses mostly have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradtape.autodiff.arguments import function_and_argnums, selected
from gradtape.autodiff.reverse import grad
from gradtape.autodiff.transforms import vmap
from gradtape.core.portable import Transformed
from gradtape.errors import ArgumentError, ShapeError


def per_sample_gradients(
    loss: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    in_axes: Any = None,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the gradient of the loss of every sample of a batch.

    It is `gt.vmap(gt.grad(loss), in_axes=(None, 0, …))`. The function sees one sample at a time, so
    arrays in it do not have the batch axis; the computation is done for all samples at once.

    Args:
        loss: The loss of one sample, such as `loss(params, x, y)`: returns a scalar.
        argnums: Which positional argument(s) to differentiate with respect to; they are the same
            for all samples.
        in_axes: Which axis of each argument numbers the samples, as for `gt.vmap`, None for one
            that all samples share. The default is 0 for all arguments but those of `argnums`.
        has_aux: Whether the loss returns `(value, aux)`; then `(gradients, aux)` is returned, with
            the samples along the first axis of both.

    Returns:
        A function of whole batches. It returns gradients in the form of the argument, each with the
        samples along a new first axis. Keyword arguments are passed to each sample as they are.

    Raises:
        ArgumentError: `argnums` or `in_axes` do not fit the arguments.
        ShapeError: The loss did not return one number for a sample, or batches differ in size.
        DTypeError: An argument to be differentiated is not floating or complex.

    >>> loss = lambda w, x, y: (np.dot(w, x) - y) ** 2
    >>> w, xs, ys = np.ones(2), np.ones((3, 2)), np.array([0.0, 1.0, 2.0])
    >>> gt.per_sample_gradients(loss)(w, xs, ys)
    array([[4., 4.],
           [2., 2.],
           [0., 0.]])
    """
    function, argnums = function_and_argnums(loss, argnums, "per_sample_gradients")

    def gradients(*args: Any, **kwargs: Any) -> Any:
        axes = sample_axes("per_sample_gradients", argnums, in_axes, args)
        of_one = of_one_sample(function, "per_sample_gradients")
        return vmap(grad(of_one, argnums, has_aux=has_aux), in_axes=axes)(*args, **kwargs)

    options = {"in_axes": in_axes, "has_aux": has_aux}
    return Transformed(gradients, per_sample_gradients, (function, argnums), options)


def sample_axes(
    name: str, argnums: int | Sequence[int], in_axes: Any, args: Sequence[Any]
) -> tuple[Any, ...]:
    """The axes of samples of each argument of a loss.

    Raises:
        ArgumentError: They do not fit the arguments, or what is differentiated.
    """
    chosen = selected(argnums, len(args), name)
    if in_axes is None:
        axes = tuple([None if n in chosen else 0 for n in range(len(args))])
    elif isinstance(in_axes, list | tuple) and len(in_axes) == len(args):
        axes = tuple(in_axes)
    else:
        raise ArgumentError(
            f"{name}: got in_axes={in_axes!r}, expected a tuple with one entry for each of the "
            f"{len(args)} arguments, None for those that all samples share"
        )
    if any(axes[n] is not None for n in chosen):
        raise ArgumentError(
            f"{name}: got in_axes={axes} and argnums={argnums}, expected None for what is "
            "differentiated; to have other parameters for each sample, use gt.vmap(gt.grad(loss))"
        )
    if all(axis is None for axis in axes):
        raise ArgumentError(
            f"{name}: got no argument with samples, expected at least one: loss(params, x)"
        )
    return axes


def of_one_sample(loss: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A loss, or a loss with an aux, that says so if it returns more than one number."""

    def checked(*args: Any, **kwargs: Any) -> Any:
        out = loss(*args, **kwargs)
        shape = getattr(out[0] if isinstance(out, tuple) and out else out, "shape", ())
        if math.prod(shape) != 1:
            raise ShapeError(
                f"{name}: the loss returned shape {shape} for one sample, expected one number. In "
                "the function, samples have no batch axis; reduce it (np.sum), or give in_axes"
            )
        return out

    return checked
