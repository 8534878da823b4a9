"""Windows that move over an array: options per axis, sizes, and views of what they see.

Arrays are laid out as in PyTorch: samples, channels, then one to three spatial axes.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array
from gradtape.ops.shape import reshape

# One number for each spatial axis, and what is added before and after each.
Sizes = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]

_MANY = 1 << 12


def per_axis(name: str, option: str, value: Any, rank: int, least: int = 1) -> Sizes:
    """One integer for each spatial axis, from one for all or a sequence of them, checked."""
    if type(value) is int and value >= least:
        return (value,) * rank
    values = value if isinstance(value, Sequence) or hasattr(value, "__len__") else (value,)
    try:
        numbers = tuple(operator.index(number) for number in values)
    except TypeError:
        numbers = ()
    if len(numbers) == 1:
        numbers *= rank
    if len(numbers) != rank or min(numbers) < least:
        several = "" if rank == 1 else f", or {rank} of them"
        raise ArgumentError(
            f"{name}: got {option}={value!r}, expected an integer from {least} on{several}"
        )
    return numbers


def ratios_per_axis(name: str, option: str, value: Any, rank: int, below: float) -> list[float]:
    """One positive number for each spatial axis, from one for all or a sequence, checked."""
    given = list(value) if hasattr(value, "__len__") else [value] * rank
    if len(given) != rank or not all(0 < ratio < below for ratio in given):
        raise ArgumentError(
            f"{name}: got {option}={value!r}, expected a number above 0 and below {below}, or "
            f"{rank} of them"
        )
    return given


def with_samples(name: str, x: Any, rank: int) -> tuple[Any, bool]:
    """An array with an axis of samples before the others, and whether that axis was added."""
    x = as_array(x)
    ndim = len(x.shape)
    if ndim not in (rank + 1, rank + 2):
        spatial = ("length", "height, width", "depth, height, width")[rank - 1]
        raise ShapeError(
            f"{name}: got shape {x.shape}, expected (samples, channels, {spatial}), "
            "or the same without samples; reshape it"
        )
    return (x, False) if ndim == rank + 2 else (reshape(x, (1, *x.shape)), True)


def has_many(x: Any, *_others: Any, **_params: Any) -> bool:
    """Whether an array of NumPy's is large enough to call a kernel for what windows see of it.

    NumPy computes that in some calls for each place in a window.
    """
    return type(x) is np.ndarray and x.size >= _MANY


def without_samples(x: Any, added: bool) -> Any:
    """A result without the axis of samples, if that was added."""
    return reshape(x, x.shape[1:]) if added else x


def window_counts(
    sizes: Sequence[Any], kernel: Sizes, stride: Sizes, padding: Pads, dilation: Sizes
) -> tuple[Any, ...]:
    """How many windows fit along each axis."""
    return tuple(
        (n + before + after - d * (k - 1) - 1) // s + 1
        for n, k, s, (before, after), d in zip(
            sizes, kernel, stride, padding, dilation, strict=True
        )
    )


def check_windows(name: str, sizes: Any, kernel: Sizes, padding: Pads, dilation: Sizes) -> None:
    """Raise unless a window fits along every axis."""
    for n, k, (before, after), d in zip(sizes, kernel, padding, dilation, strict=True):
        if n + before + after < d * (k - 1) + 1:
            raise ShapeError(
                f"{name}: got {n} elements along an axis, {before + after} of padding, and "
                f"windows over {d * (k - 1) + 1}, expected room for a window; pad more"
            )


def taps(kernel: Sizes) -> Iterator[Sizes]:
    """The places in a window, in order."""
    return itertools.product(*map(range, kernel))


# ---- windows along single axes ------------------------------------------------------------------


class Part(NamedTuple):
    """The elements that windows see at one tap.

    Attributes:
        tap: The number of the place.
        into: Which windows see an element there.
        of: Which elements those are.
    """

    tap: int
    into: slice
    of: Any


class Windows(NamedTuple):
    """Windows along one axis: `number` of them, over `size` elements with `before` padded ones."""

    size: int
    number: int
    kernel: int
    stride: int
    before: int
    dilation: int

    def parts(self) -> Iterator[Part]:
        """The elements that windows see at each tap, for taps at which any window sees one."""
        for tap in range(self.kernel):
            shift = tap * self.dilation - self.before
            first = max(0, -(shift // self.stride))
            stop = min(self.number, (self.size - 1 - shift) // self.stride + 1)
            if first < stop:
                start = first * self.stride + shift
                end = (stop - 1) * self.stride + shift + 1
                yield Part(tap, slice(first, stop), slice(start, end, self.stride))


def windows_of(
    name: str, sizes: Sequence[int], kernel_size: Any, stride: Any, padding: Any, dilation: Any
) -> tuple[Windows, ...]:
    """Windows along each spatial axis from the options of a function, checked."""
    rank = len(sizes)
    kernel = per_axis(name, "kernel_size", kernel_size, rank)
    strides = per_axis(name, "stride", stride, rank)
    before = per_axis(name, "padding", padding, rank, least=0)
    dilations = per_axis(name, "dilation", dilation, rank)
    axes = zip(sizes, kernel, strides, before, dilations, strict=True)
    windows = tuple(
        Windows(n, (n + 2 * p - d * (k - 1) - 1) // s + 1, k, s, p, d) for n, k, s, p, d in axes
    )
    if min([w.number for w in windows]) < 1:
        check_windows(name, sizes, kernel, tuple((n, n) for n in before), dilations)
    return windows


class Shares(NamedTuple):
    """Windows of almost equal sizes that cover an axis, as adaptive pooling has them."""

    size: int
    number: int

    def parts(self) -> Iterator[Part]:
        """The elements that windows see at each tap.

        The last element of a window stands in for those it lacks.
        """
        start, stop = self.bounds(np.arange(self.number))
        for tap in range(self.kernel):
            yield Part(tap, slice(0, self.number), np.minimum(start + tap, stop - 1))

    @property
    def kernel(self) -> int:
        """How many elements the longest of them has."""
        start, stop = self.bounds(np.arange(self.number))
        return int((stop - start).max(initial=0))

    def bounds(self, which: Any) -> tuple[Any, Any]:
        """Where a window, or each of several, starts and ends."""
        return which * self.size // self.number, -(-(which + 1) * self.size // self.number)


def joint_parts(windows: Sequence[Windows | Shares | None]) -> Iterator[tuple[Any, Any, Any]]:
    """The parts of all axes together: taps, which windows see an element there, and which elements.

    Each has an entry for each axis with windows.
    """
    for parts in itertools.product(*(w.parts() for w in windows if w is not None)):
        yield tuple(zip(*parts, strict=True))  # type: ignore[misc]


def part_of(x: Any, axis: int, where: Any) -> Any:
    """A part along an axis counted from the last one, by a slice or an array of numbers."""
    if not isinstance(where, slice) and x.flags.c_contiguous:
        return x.take(where, axis=axis)  # faster, but it would copy other arrays whole
    return x[along(axis, where)]


def along(axis: int, where: Any) -> tuple[Any, ...]:
    """The index of a part along an axis counted from the last one."""
    return (..., where, *(slice(None),) * (-axis - 1))
