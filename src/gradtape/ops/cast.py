"""Changes of dtype, complex parts, copies, and cutting history."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_in_place
from gradtape.core.copies import converted
from gradtape.core.define import elementwise, general, linear
from gradtape.core.lowering import Pointwise, Relabel
from gradtape.core.op import EVERY, Facts, op_of
from gradtape.ops.arguments import as_dtype
from gradtape.ops.device import check_device, device_of
from gradtape.typing import Array, ArrayLike

_LARGEST_HALF = 65504


def _astype_forward(xp: Any, x: Any, dtype: np.dtype[Any]) -> Any:
    x = xp.asarray(x)
    return x.astype(dtype) if xp is not np or x.dtype == dtype else converted(x, np.dtype(dtype))


# To derivatives a cast is the identity; the walk gives cotangents the dtype of their
# primal, and drops the imaginary part for a real one.
_astype = linear(
    "astype",
    _astype_forward,
    lambda ct, _out, _x, dtype: ct,
    infer=lambda x, dtype: Aval(x.shape, np.dtype(dtype)),
    batch=batch_in_place,
    facts=Facts(layout="kept"),
    lower=Pointwise(scalar.convert),
)

astype_op = op_of(_astype)


def astype(x: ArrayLike, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """The array converted to another dtype; differentiable between floating dtypes.

    Args:
        x: What to convert.
        dtype: The dtype to convert to.
        copy: Whether an array that has the dtype already is copied.
        device: None or where the array is: gradtape does not move arrays.

    Raises:
        DTypeError: There is no such dtype.
        ArgumentError: The array is on another device.

    >>> gt.astype(np.array([1.0, 2.0]), np.float32)
    array([1., 2.], dtype=float32)
    """
    dtype = as_dtype(dtype, "astype")
    if device is not None:
        check_device(device, "astype", device_of(x))
    return x if not copy and x.dtype == dtype else _astype(x, dtype=dtype)


# d copy(x) = dx
_copy = linear(
    "copy",
    lambda xp, x: xp.array(x),
    lambda ct, _out, _x: ct,
    batch=batch_in_place,
    facts=Facts(rearranges=True, layout="kept"),
    lower=Relabel(),
)

copy_op = op_of(_copy)


def copy(x: ArrayLike, /) -> Array:
    """A copy with memory of its own, still differentiable.

    >>> gt.copy(np.array([1.0, 2.0]))
    array([1., 2.])
    """
    return _copy(x)


# Untracked at every level: reverse mode does not record it, forward mode drops the tangent.
_stop_gradient = general(
    "stop_gradient",
    lambda xp, x: x,
    batch=batch_in_place,
    aliases=True,
    facts=Facts(rearranges=True, layout="same", carries=EVERY),
    lower=Pointwise(scalar.positive),
)

stop_gradient_op = op_of(_stop_gradient)


def stop_gradient(x: ArrayLike, /) -> Array:
    """The same value without history: derivatives of every kind and level stop here.

    >>> gt.grad(lambda x: x * gt.stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return _stop_gradient(x)


# d conj(x) = conj(dx); real-linear, so its adjoint is conj again
@elementwise(
    np.conjugate,
    lambda ct, _out, _x: conj(ct),  # type: ignore[has-type]
    vjps=(lambda ct, _out, _x: conj(ct),),  # type: ignore[has-type]
    facts=Facts(carries=EVERY),
    lower=lambda x: scalar.promoted(x, like="conjugate")[0],
)
def conj(x: ArrayLike, /) -> Array:
    """Complex conjugate, element by element.

    >>> gt.conj(np.array([1.0 + 2.0j]))
    array([1.-2.j])
    """


def conj_if_complex(x: Any) -> Any:
    """The conjugate of a complex array; a real one is unchanged. For adjoints of products."""
    return conj(x) if x.dtype.kind == "c" else x


def over_count(x: Any, count: float) -> Any:
    """`x / count`, also for more elements than the largest number of float16, which is 65504."""
    if x.dtype == np.float16 and count > _LARGEST_HALF:
        return astype(astype(x, np.float32) / count, np.float16)
    return x / count


def real_product(x: Any, y: Any) -> Any:
    """Re(x̄·y), as in inner products: for real numbers simply the product."""
    return real(conj(x) * y) if x.dtype.kind == "c" else x * y


def _part_forward(xp: Any, x: Any, part: str) -> Any:
    found = getattr(xp, part)(x)
    # NumPy's is a view of a complex array; this copies, and keeps 0-d results numbers.
    return found | False if getattr(found, "dtype", None) == np.bool_ else found * 1


# d Re(x) = Re(dx); the adjoint takes a real cotangent into the complex plane as it is
@elementwise(
    lambda xp, x: _part_forward(xp, x, "real"),
    lambda ct, _out, _x: real(ct),  # type: ignore[has-type]
    vjps=(lambda ct, _out, _x: ct,),
    lower=scalar.positive,
)
def real(x: ArrayLike, /) -> Array:
    """Real part, element by element.

    >>> gt.real(np.array([1.0 + 2.0j]))
    array([1.])
    """


# d Im(x) = Im(dx); adjoint: ct ↦ i·ct. That of a real number does not depend on it
@elementwise(
    lambda xp, x: _part_forward(xp, x, "imag"),
    lambda ct, _out, _x: imag(ct) if ct.dtype.kind == "c" else None,  # type: ignore[has-type]
    vjps=(lambda ct, _out, _x: ct * 1j if _x.dtype.kind == "c" else None,),
    lower=lambda x: scalar.constant(0, x.dtype),
)
def imag(x: ArrayLike, /) -> Array:
    """Imaginary part, element by element; zeros for a real array.

    >>> gt.imag(np.array([1.0 + 2.0j]))
    array([2.])
    """
