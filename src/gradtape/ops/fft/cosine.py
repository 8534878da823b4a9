"""Cosine and sine transforms of types 1 to 4, with SciPy's names and scales.

Their matrices are symmetric (types 1 and 4), or the transposes of each other (2 and 3), but for an
element at one end or both that has half the weight of the others. `orthogonalize` removes that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import linear
from gradtape.core.op import Facts
from gradtape.errors import ShapeError
from gradtape.ops.checks import check_choice
from gradtape.ops.family import member
from gradtape.ops.fft.common import (
    OPTIONS,
    OTHER_NORM,
    complex_dtype,
    library,
    prepared,
    real_dtype,
)
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike, Axis

# The transform with the transposed matrix, which but for scale is also the inverse one.
_OTHER_TYPE = {1: 1, 2: 3, 3: 2, 4: 4}


def _ends_times(factor: float, x: Any, axes: Sequence[int], ends: Sequence[int]) -> Any:
    """`x` with the elements at some ends of each of the axes multiplied by a factor."""
    for axis in axes:
        factors = np.ones(x.shape[axis], real_dtype(x.dtype))
        factors[list(ends)] = factor
        x = x * factors.reshape((-1,) + (1,) * (len(x.shape) - axis - 1))
    return x


def _defined(name: str, lighter: dict[int, tuple[int, ...]]) -> Callable[..., Any]:
    """The op of cosine or sine transforms.

    Args:
        name: "dct" or "dst".
        lighter: At which ends of the input an element has half the weight, for types 1 and 3.
    """

    def forward(xp: Any, x: Any, type: int, axis: Any, norm: str, orthogonalize: bool) -> Any:
        function = getattr(library(xp), f"{name}n")
        params = {"type": type, "axes": axis, "norm": norm, "orthogonalize": orthogonalize}
        if x.dtype.kind != "c" or orthogonalize == (norm == "ortho"):
            return function(x, **params)
        # SciPy leaves an `orthogonalize` other than the norm's own out for complex numbers.
        return function(x.real, **params) + 1j * function(x.imag, **params)

    # y = C·x: with W, which halves the lighter elements, C₁ᵀ = W·C₁·W⁻¹, C₂ᵀ = C₃·W⁻¹ and
    # C₃ᵀ = W·C₂; the others are symmetric, and `orthogonalize` makes W the identity
    def transpose(
        ct: Any, _out: Any, _x: Any, type: int, axis: Any, norm: str, orthogonalize: bool
    ) -> Any:
        other = _OTHER_TYPE[type]
        halved = {} if orthogonalize else lighter
        ct = _ends_times(2.0, ct, axis, halved.get(other, ()))
        ct = transform(ct, type=other, axis=axis, norm=norm, orthogonalize=orthogonalize)
        return _ends_times(0.5, ct, axis, halved.get(type, ()))

    transform = linear(
        name,
        forward,
        transpose,
        infer=lambda x, **_params: Aval(
            x.shape, complex_dtype(x.dtype) if x.dtype.kind == "c" else real_dtype(x.dtype)
        ),
        facts=Facts(reads="axis"),
    )
    return transform


_TRANSFORMS = {
    "dct": _defined("dct", {1: (0, -1), 3: (0,)}),
    "dst": _defined("dst", {3: (-1,)}),
}


# What each of them is, for its docstring.
_KINDS = {
    "dct": "Discrete cosine transform",
    "idct": "Inverse of `dct` of the same type",
    "dst": "Discrete sine transform",
    "idst": "Inverse of `dst` of the same type",
}
_ERRORS = {
    "ShapeError": "There are no points, or only one for a cosine transform of type 1.",
    "AxisError": "There is no such axis.",
}


@options(OPTIONS, raises=_ERRORS)
def _over(
    name: str,
    x: ArrayLike,
    /,
    type: int = 2,
    s: Any = None,
    axes: Axis = None,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """{what} over several axes, as `scipy.fft.{name}`.

    Args:
        x: Real or complex numbers, or the coefficients. Single precision stays single.

    dctn:
    >>> gt.fft.dctn(np.ones((2, 2)))
    array([[16.,  0.],
           [ 0.,  0.]])

    idctn:
    >>> gt.fft.idctn(np.array([[16.0, 0.0], [0.0, 0.0]]))
    array([[1., 1.],
           [1., 1.]])

    dstn:
    >>> gt.fft.dstn(np.ones((1, 1)))
    array([[4.]])

    idstn:
    >>> gt.fft.idstn(np.array([[4.0]]))
    array([[1.]])
    """
    check_choice(name, _OTHER_TYPE, type=type)
    x, chosen, norm = prepared(name, x, s, axes, norm)
    if not chosen:
        return x
    kind = name.removeprefix("i")[:3]
    if kind == "dct" and type == 1 and any(x.shape[axis] < 2 for axis in chosen):
        raise ShapeError(f"{name}: got shape {x.shape}; type 1 needs two points along each axis")
    orthogonalize = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    if name[0] == "i":
        type, norm = _OTHER_TYPE[type], OTHER_NORM[norm]
    transform = _TRANSFORMS[kind]
    return transform(x, type=type, axis=chosen, norm=norm, orthogonalize=orthogonalize)


@options(OPTIONS, raises=_ERRORS)
def _along(
    name: str,
    x: ArrayLike,
    /,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """{what} along one axis, as `scipy.fft.{name}`.

    Args:
        x: Real or complex numbers, or the coefficients. Single precision stays single.

    dct:
    >>> gt.fft.dct(np.array([1.0, 1.0, 1.0]))
    array([6., 0., 0.])

    idct:
    >>> gt.fft.idct(np.array([6.0, 0.0, 0.0]))
    array([1., 1., 1.])

    dst:
    >>> gt.fft.dst(np.array([1.0, -1.0]), type=4)
    array([-1.0823922 ,  2.61312593])

    idst:
    >>> np.round(gt.fft.idst(gt.fft.dst(np.array([1.0, -1.0]))), 12)
    array([ 1., -1.])
    """
    s = None if n is None else (n,)
    return _over(name, x, type, s, (axis,), norm, orthogonalize=orthogonalize)


dct, idct, dst, idst = (member(name, _along, what=what) for name, what in _KINDS.items())
dctn, idctn, dstn, idstn = (member(f"{name}n", _over, what=what) for name, what in _KINDS.items())
