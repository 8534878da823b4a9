"""Companions of the transforms: their frequencies, and the order of their coefficients."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.ops.arguments import as_array, as_dtype, normalize_axes
from gradtape.ops.checks import check_least
from gradtape.ops.device import check_device
from gradtape.ops.family import member
from gradtape.ops.fft.common import library
from gradtape.ops.rearrange import roll
from gradtape.typing import Array, ArrayLike, Axis


def _frequencies(
    name: str, n: int, /, d: Any = 1.0, *, dtype: Any = None, device: Any = None
) -> Array:
    """The frequencies of the {count} coefficients of `gt.fft.{transform}`, as a tensor.

    Args:
        n: How many points are transformed.
        d: Their distance; the result is differentiable in a tensor.
        dtype: The dtype of the result; float64 if not given.
        device: "cpu", or None for the same.

    Raises:
        ArgumentError: `n` is less than 1.

    fftfreq:
    >>> gt.fft.fftfreq(4, d=0.5)
    tensor([ 0. ,  0.5, -1. , -0.5])

    rfftfreq:
    >>> gt.fft.rfftfreq(4, d=0.5)
    tensor([0. , 0.5, 1. ])
    """
    n = operator.index(n)
    check_least(name, 1, n=n)
    check_device(device, name)
    half = n // 2
    cycles = np.arange(half + 1) if name == "rfftfreq" else (np.arange(n) + half) % n - half
    if isinstance(d, Tensor):
        return cycles / (n * d)
    return Tensor((cycles / (n * d)).astype(as_dtype(dtype, name)))


fftfreq = member("fftfreq", _frequencies, count="n", transform="fft")
rfftfreq = member("rfftfreq", _frequencies, count="n//2 + 1", transform="rfft")


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
