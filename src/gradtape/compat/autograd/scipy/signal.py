"""`autograd.scipy.signal`: its own `convolve`; other names are those of `gradtape.scipy.signal`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as _np

from gradtape.compat.autograd.mirror import mirror as _mirror
from gradtape.core.aval import aval_of as _aval_of
from gradtape.errors import ArgumentError as _ArgumentError, ShapeError as _ShapeError
from gradtape.ops.contract import tensordot as _tensordot
from gradtape.ops.pad_modes import pad as _pad
from gradtape.ops.rearrange import flip as _flip
from gradtape.ops.shape import transpose as _transpose

Axes = Sequence[Sequence[int]]


class _Operand(NamedTuple):
    """An array, and its axes to convolve along, to sum the product over, and the others."""

    array: Any
    conv: tuple[int, ...]
    dot: tuple[int, ...]

    @property
    def ignored(self) -> tuple[int, ...]:
        """The axes that stay in the result."""
        return tuple(n for n in range(len(self.shape)) if n not in self.conv + self.dot)

    @property
    def shape(self) -> tuple[int, ...]:
        return _aval_of(self.array).shape

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the axes to convolve along."""
        return tuple(self.shape[n] for n in self.conv)


def convolve(
    A: Any,
    B: Any,
    axes: Axes | None = None,
    dot_axes: Axes = ((), ()),
    mode: str = "full",
) -> Any:
    """The convolution of two arrays along pairs of axes, as autograd has it.

    Args:
        A: The one array.
        B: The other one.
        axes: The axes of each to convolve along; all of them if not given.
        dot_axes: The axes of each whose products are summed.
        mode: "full", "valid" or "same", as in `scipy.signal.convolve`.

    Returns:
        An array with the other axes of `A`, those of `B`, and those of the convolution.

    Raises:
        ArgumentError: There is no such mode.
        ShapeError: With mode "valid", neither array is as large as the other along all axes.

    >>> from gradtape.compat.autograd.scipy.signal import convolve
    >>> convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]))
    array([1., 3., 5., 3.])
    """
    if mode not in ("full", "valid", "same"):
        raise _ArgumentError(f"convolve: got mode={mode!r}, expected 'full', 'valid' or 'same'")
    every = tuple(range(len(_aval_of(A).shape)))
    of_a, of_b = (every, every) if axes is None else map(tuple, axes)
    a = _Operand(A, of_a, tuple(dot_axes[0]))
    b = _Operand(B, of_b, tuple(dot_axes[1]))
    if mode == "valid":
        if all(n >= m for n, m in zip(a.sizes, b.sizes, strict=True)):
            return _slid(a, b, kernel_first=False)
        if all(n <= m for n, m in zip(a.sizes, b.sizes, strict=True)):
            return _slid(b, a, kernel_first=True)
        raise _ShapeError(
            f"convolve: got sizes {a.sizes} and {b.sizes} along the axes of the convolution, "
            "expected one array to be as large as the other along all of them; use mode='full'"
        )
    padded = _widened(a, [m - 1 for m in b.sizes])
    full = _slid(padded, b, kernel_first=False)
    if mode == "full":
        return full
    parts = [slice((m - 1) // 2, (m - 1) // 2 + n) for n, m in zip(a.sizes, b.sizes, strict=True)]
    return full[(..., *parts)] if parts else full


def _widened(operand: _Operand, widths: Sequence[int]) -> _Operand:
    """An operand with zeros on both sides of its axes to convolve along."""
    pads = [(0, 0)] * len(operand.shape)
    for axis, width in zip(operand.conv, widths, strict=True):
        pads[axis] = (width, width)
    return operand._replace(array=_pad(operand.array, pads))


def _slid(signal: _Operand, kernel: _Operand, *, kernel_first: bool) -> Any:
    """The products of a flipped kernel with all parts of a signal that it fits into.

    Args:
        signal: The larger one.
        kernel: The smaller one.
        kernel_first: Whether its axes go first in the result.
    """
    windows = _np.lib.stride_tricks.sliding_window_view(
        signal.array, kernel.sizes, axis=signal.conv
    )
    count = len(signal.shape)
    over = [*signal.dot, *range(count, count + len(signal.conv))]
    flipped = _flip(kernel.array, axis=kernel.conv)
    product = _tensordot(windows, flipped, axes=(over, [*kernel.dot, *kernel.conv]))
    # What is left: the axes of the signal in order, without those summed over; then the kernel's.
    left = [n for n in range(count) if n not in signal.dot]
    of_signal = [left.index(n) for n in signal.ignored]
    of_conv = [left.index(n) for n in signal.conv]
    of_kernel = [len(left) + n for n in range(len(kernel.ignored))]
    first, second = (of_kernel, of_signal) if kernel_first else (of_signal, of_kernel)
    return _transpose(product, (*first, *second, *of_conv))


_mirror(globals(), "gradtape.scipy.signal")
