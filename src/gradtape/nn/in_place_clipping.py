"""Clip the gradients of parameters in place: what is in `.grad`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradtape.core.lazy import Deferred
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, a_type
from gradtape.nn.module import Module

# Few models clip, and the package loads others.
_by_global_norm = Deferred("gradtape.gradients.clipping:clip_by_global_norm")
_by_value = Deferred("gradtape.gradients.clipping:clip_by_value")

_OF_GRADIENTS = {"clip_grad_norm_": "clip_by_global_norm", "clip_grad_value_": "clip_by_value"}

Parameters = Tensor | Iterable[Tensor]


def clip_grad_norm_(
    parameters: Parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Any:
    """Scale the gradients of parameters, so that the norm of all of them is at most `max_norm`.

    `gt.gradients.clip_by_global_norm` does it with gradients in any containers, compiled as well.

    Args:
        parameters: The parameters, such as `net.parameters()`; those without a gradient are left.
        max_norm: The largest norm.
        norm_type: 2, the only one there is.
        error_if_nonfinite: Whether to raise if a gradient is NaN or infinite; if not, gradients
            stay as they are then, and the step of an optimizer raises, or a loss scaler skips it.

    Returns:
        The norm before.

    Raises:
        ArgumentError: The norm is not positive, or another kind of norm is wanted.
        DTypeError: Something is not a tensor.
        NonFiniteError: A gradient is NaN or infinite, and that is to be an error.

    >>> w = gt.tensor([3.0, 4.0], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> gt.nn.utils.clip_grad_norm_([w], 1.0), w.grad
    (tensor(10.), tensor([0.6, 0.8]))
    """
    if norm_type != 2:
        raise ArgumentError(
            f"clip_grad_norm_: got norm_type={norm_type!r}, expected 2; use gt.gradients for others"
        )
    params, grads = _with_gradients(parameters, "clip_grad_norm_")
    if not grads:
        return 0.0
    nonfinite = "raise" if error_if_nonfinite else "pass"
    clipped, norm = _by_global_norm(grads, max_norm, return_norm=True, nonfinite=nonfinite)
    _write(params, clipped)
    return norm


def clip_grad_value_(parameters: Parameters, clip_value: float) -> None:
    """Limit each element of the gradients of parameters to `[-clip_value, clip_value]`.

    `gt.gradients.clip_by_value` does it with gradients in any containers, compiled as well.

    Args:
        parameters: The parameters, such as `net.parameters()`; those without a gradient are left.
        clip_value: The largest magnitude.

    Raises:
        ArgumentError: The magnitude is negative.
        DTypeError: Something is not a tensor.

    >>> w = gt.tensor([3.0, 0.1], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> gt.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([1. , 0.2])
    """
    params, grads = _with_gradients(parameters, "clip_grad_value_")
    if grads:
        _write(params, _by_value(grads, clip_value))


def _with_gradients(parameters: Parameters, name: str) -> tuple[list[Tensor], list[Any]]:
    """The parameters that have a gradient, each once, and the gradients."""
    if isinstance(parameters, Module):
        raise DTypeError(
            f"{name}: got {a_type(parameters)}, expected parameters, such as net.parameters(); "
            f"gradients in a module, as of gt.grad, go to gt.gradients.{_OF_GRADIENTS[name]}"
        )
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for one in listed:
        if not isinstance(one, Tensor):
            raise DTypeError(
                f"{name}: got {a_type(one)}, expected parameters, such as net.parameters()"
            )
    params = [one for one in {id(one): one for one in listed}.values() if one.grad is not None]
    return params, [one.grad for one in params]


def _write(params: list[Tensor], grads: list[Any]) -> None:
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad
