"""Companions of the transforms: their frequencies, and the order of their coefficients."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array, as_dtype, normalize_axes
from gradtape.ops.fft.common import library
from gradtape.ops.rearrange import roll
from gradtape.typing import Array, ArrayLike, Axis


def _count(name: str, n: int) -> int:
    count = operator.index(n)
    if count < 1:
        raise ArgumentError(f"{name}: got n={n}, expected at least one point")
    return count


def _cycles(name: str, cycles: Any, n: int, d: Any, dtype: Any, device: Any) -> Array:
    if device not in (None, "cpu"):
        raise ArgumentError(f'{name}: got device={device!r}, expected "cpu"')
    if isinstance(d, Tensor):
        return cycles / (n * d)
    return Tensor((cycles / (n * d)).astype(as_dtype(dtype, name)))


def fftfreq(n: int, /, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of the n coefficients of `gt.fft.fft`, as a tensor.

    Args:
        n: How many points are transformed.
        d: Their distance; the result is differentiable in a tensor.
        dtype: The dtype of the result; float64 if not given.
        device: "cpu", or None for the same.

    Raises:
        ArgumentError: `n` is less than 1.

    >>> gt.fft.fftfreq(4, d=0.5)
    tensor([ 0. ,  0.5, -1. , -0.5])
    """
    n = _count("fftfreq", n)
    cycles = (np.arange(n) + n // 2) % n - n // 2
    return _cycles("fftfreq", cycles, n, d, dtype, device)


def rfftfreq(n: int, /, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of the n//2 + 1 coefficients of `gt.fft.rfft`, as a tensor.

    Args:
        n: How many points are transformed.
        d: Their distance; the result is differentiable in a tensor.
        dtype: The dtype of the result; float64 if not given.
        device: "cpu", or None for the same.

    Raises:
        ArgumentError: `n` is less than 1.

    >>> gt.fft.rfftfreq(4, d=0.5)
    tensor([0. , 0.5, 1. ])
    """
    n = _count("rfftfreq", n)
    return _cycles("rfftfreq", np.arange(n // 2 + 1), n, d, dtype, device)


def fftshift(x: ArrayLike, /, axes: Axis = None) -> Array:
    """The coefficients with frequency 0 moved to the middle.

    Args:
        x: What to move.
        axes: Along which axes; None takes all of them.

    Raises:
        AxisError: There is no such axis.

    >>> gt.fft.fftshift(gt.fft.fftfreq(4, d=0.25))
    tensor([-2., -1.,  0.,  1.])
    """
    x = as_array(x)
    chosen = normalize_axes(axes, len(x.shape), "fftshift")
    return roll(x, tuple(x.shape[axis] // 2 for axis in chosen), chosen) if chosen else x


def ifftshift(x: ArrayLike, /, axes: Axis = None) -> Array:
    """The inverse of `gt.fft.fftshift`, which differs from it for odd sizes.

    Args:
        x: What to move.
        axes: Along which axes; None takes all of them.

    Raises:
        AxisError: There is no such axis.

    >>> gt.fft.ifftshift(np.array([-1.0, 0.0, 1.0]))
    array([ 0.,  1., -1.])
    """
    x = as_array(x)
    chosen = normalize_axes(axes, len(x.shape), "ifftshift")
    return roll(x, tuple(-(x.shape[axis] // 2) for axis in chosen), chosen) if chosen else x


def next_fast_len(target: int, real: bool = False) -> int:
    """The smallest size of at least `target` for which transforms are fast: pad to it.

    Args:
        target: The size needed.
        real: Whether real numbers are transformed.

    >>> gt.fft.next_fast_len(97)
    98
    """
    return int(library(np).next_fast_len(target, real))


def prev_fast_len(target: int, real: bool = False) -> int:
    """The largest size up to `target` for which transforms are fast: cut off to it.

    Args:
        target: The size at hand.
        real: Whether real numbers are transformed.

    >>> gt.fft.prev_fast_len(97)
    96
    """
    return int(library(np).prev_fast_len(target, real))
