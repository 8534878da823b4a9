"""The Fourier transform of complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.define import linear
from gradtape.core.op import Facts
from gradtape.ops.fft.common import OTHER_NORM, complex_dtype, library, prepared
from gradtape.typing import Array, ArrayLike, Axis


def _forward(xp: Any, x: Any, axis: tuple[int, ...], inverse: bool, norm: str) -> Any:
    fft = library(xp)
    return (fft.ifftn if inverse else fft.fftn)(x, axes=axis, norm=norm)


# y = F·x with a symmetric matrix F; adjoint: conj(F), the transform in the other direction with
# the scale of this one. Of a real x the walk keeps the real part.
fft_over: Callable[..., Any] = linear(
    "fft",
    _forward,
    lambda ct, _out, _x, axis, inverse, norm: fft_over(
        ct, axis=axis, inverse=not inverse, norm=OTHER_NORM[norm]
    ),
    infer=lambda x, **_params: Aval(x.shape, complex_dtype(x.dtype)),
    facts=Facts(reads="axis"),
)


def transformed(name: str, x: ArrayLike, s: Any, axes: Axis, norm: str | None) -> Array:
    """Transform complex numbers over axes; the name says whether it is the inverse."""
    x, chosen, norm = prepared(name, x, s, axes, norm)
    return fft_over(x, axis=chosen, inverse=name[0] == "i", norm=norm) if chosen else x
