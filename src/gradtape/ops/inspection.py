"""Questions about dtypes and about gradtape itself, under the names of the Array API standard."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.small_floats import FLOAT16, FLOAT32
from gradtape.core.tensor import Tensor, innermost, is_extended_float
from gradtape.errors import ArgumentError, DTypeError
from gradtape.ops.checks import check_choice
from gradtape.ops.device import CPU, check_device

VERSION = "2024.12"
_VERSIONS = ("2021.12", "2022.12", "2023.12", VERSION)
CASTING = ("no", "equiv", "safe", "same_kind", "unsafe")


# ---- dtypes -------------------------------------------------------------------------------------


def _dtype_of(x: Any, name: str) -> np.dtype[Any]:
    """A dtype argument, or the dtype of an array or tensor."""
    given = x.dtype if isinstance(x, Tensor | np.ndarray | np.generic) else x
    try:
        dtype: np.dtype[Any] = np.dtype("None" if given is None else given)
    except TypeError as error:
        raise DTypeError(f"{name}: got {x!r}, expected a dtype such as gt.float32") from error
    return dtype


class FloatInfo:
    """Limits of a floating dtype: those of the standard as Python's numbers, others as NumPy's.

    Python's numbers do not change the dtype of what they are combined with: `x + info.eps`.

    Attributes:
        bits: The number of bits of an element, or of one part of a complex element.
        dtype: The dtype; of a complex one that of its parts.
        eps: The distance from 1 to the next larger number.
        max: The largest number.
        min: The smallest number, which is negative.
        smallest_normal: The smallest positive number with full precision.
    """

    __slots__ = ("_info", "bits", "dtype", "eps", "max", "min", "smallest_normal")

    def __init__(self, info: Any) -> None:
        self._info = info
        self.bits = int(info.bits)
        self.dtype = np.dtype(info.dtype)
        self.eps = float(info.eps)
        self.max = float(info.max)
        self.min = float(info.min)
        self.smallest_normal = float(info.smallest_normal)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._info, name)

    def __repr__(self) -> str:
        return f"finfo(min={self.min}, max={self.max}, eps={self.eps}, dtype={self.dtype})"


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating dtype, or of the parts of a complex one.

    Args:
        type: A dtype, or an array or tensor of it.

    Raises:
        DTypeError: It is not a floating or complex dtype.

    >>> gt.finfo(gt.float32).eps
    1.1920928955078125e-07
    """
    dtype = _dtype_of(type, "finfo")
    if is_extended_float(dtype):
        import ml_dtypes

        return FloatInfo(ml_dtypes.finfo(dtype))  # type: ignore[no-untyped-call]
    if dtype.kind not in "fc":
        raise DTypeError(f"finfo: got {dtype}, expected a floating dtype; use gt.iinfo")
    return FloatInfo(np.finfo(dtype))


def iinfo(type: Any, /) -> np.iinfo[Any]:
    """The limits of an integer dtype.

    Args:
        type: A dtype, or an array or tensor of it.

    Raises:
        DTypeError: It is not an integer dtype.

    >>> gt.iinfo(gt.int8).max
    127
    """
    dtype = _dtype_of(type, "iinfo")
    if dtype.kind not in "iu":
        raise DTypeError(f"iinfo: got {dtype}, expected an integer dtype; use gt.finfo")
    return np.iinfo(dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        dtype: The dtype.
        kind: A dtype, or one of "bool", "signed integer", "unsigned integer", "integral",
            "real floating", "complex floating", "numeric"; or a tuple, for any one of them.

    Raises:
        ArgumentError: There is no such kind.
        DTypeError: There is no such dtype.

    >>> gt.isdtype(gt.float32, "real floating")
    True
    """
    dtype = _dtype_of(dtype, "isdtype")
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(_is_of_kind(dtype, one) for one in kinds)


def _is_of_kind(dtype: np.dtype[Any], kind: Any) -> bool:
    if not isinstance(kind, str):
        return bool(dtype == _dtype_of(kind, "isdtype"))
    # bfloat16 is a real floating dtype like float16, which NumPy knows.
    stand_in = FLOAT16 if is_extended_float(dtype) else dtype
    try:
        return np.isdtype(stand_in, kind)
    except ValueError as error:
        raise ArgumentError(
            f"isdtype: got kind {kind!r}, expected a dtype or one of bool, signed integer, "
            "unsigned integer, integral, real floating, complex floating, numeric"
        ) from error


def can_cast(from_: Any, to: Any, /, casting: str = "safe") -> bool:
    """Whether one dtype can be cast to another without losing values.

    Args:
        from_: A dtype, or an array or tensor of it.
        to: The dtype to cast to.
        casting: What may be lost: "no", "equiv", "safe", "same_kind" or "unsafe", as in NumPy.

    Raises:
        DTypeError: There is no such dtype.

    >>> gt.can_cast(gt.float32, gt.float64), gt.can_cast(gt.float64, gt.float32)
    (True, False)
    """
    check_choice("can_cast", CASTING, casting=casting)
    rule: Any = casting
    return np.can_cast(_dtype_of(from_, "can_cast"), _dtype_of(to, "can_cast"), casting=rule)


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype that results from combining arrays, dtypes and Python's numbers.

    Python's numbers do not decide more than the kind: `gt.float32` and 2.0 give float32.

    Args:
        *arrays_and_dtypes: Arrays, tensors, dtypes or numbers, at least one.

    Raises:
        ArgumentError: Nothing was given.
        DTypeError: They have no dtype in common.

    >>> gt.result_type(gt.float32, gt.ones(2, dtype=gt.int16), 2.0)
    dtype('float32')
    """
    if not arrays_and_dtypes:
        raise ArgumentError("result_type: got nothing, expected at least one array or dtype")
    operands = [_operand(x) for x in arrays_and_dtypes]
    floats = {x for x in operands if isinstance(x, np.dtype) and x.kind in "fV"}
    narrow = floats.pop() if len(floats) == 1 else None
    # As in ops (see `core.small_floats`): bfloat16 is promoted like float16.
    stand_in = FLOAT32 if narrow is None else FLOAT16
    try:
        found = np.result_type(
            *(stand_in if getattr(x, "kind", "") == "V" else x for x in operands)
        )
    except TypeError as error:
        raise DTypeError(f"result_type: got {', '.join(map(str, operands))}; {error}") from error
    return narrow if narrow is not None and narrow.kind == "V" and found == FLOAT16 else found


def _operand(x: Any) -> Any:
    """A dtype, or a number of Python's, which is weak also as an argument of compiled code."""
    if type(x) in (bool, int, float, complex):
        return x
    value = innermost(x, show=True) if isinstance(x, Tensor) else x
    if isinstance(value, Aval) and value.weak:
        return value.dtype.type(0).item()
    return _dtype_of(x, "result_type")


# ---- the namespace ------------------------------------------------------------------------------

_KINDS = ("bool", "signed integer", "unsigned integer", "real floating", "complex floating")
_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)


class NamespaceInfo:
    """Capabilities of gradtape; see the inspection functions of the Array API standard.

    >>> gt.__array_namespace_info__().default_device()
    'cpu'
    """

    def capabilities(self) -> dict[str, Any]:
        """Optional features, and the largest number of axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where arrays are made."""
        return CPU

    def devices(self) -> list[str]:
        """Where arrays can be made."""
        return [CPU]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes that functions choose if none is given: NumPy's."""
        check_device(device, "default_dtypes")
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int_),
            "indexing": np.dtype(np.intp),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of the standard by name, all or those of a kind (see `gt.isdtype`)."""
        check_device(device, "dtypes")
        wanted = _KINDS if kind is None else kind
        return {name: np.dtype(name) for name in _NAMES if isdtype(np.dtype(name), wanted)}


def namespace_info() -> NamespaceInfo:
    """The capabilities of gradtape, in the form of the Array API standard.

    >>> gt.__array_namespace_info__().capabilities()["boolean indexing"]
    True
    """
    return NamespaceInfo()


def _namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The module whose functions work on tensors: gradtape.

    Raises:
        ArgumentError: It does not follow that version of the standard.
    """
    check_choice("__array_namespace__", (None, *_VERSIONS), api_version=api_version)
    return sys.modules["gradtape"]


Tensor.__array_namespace__ = _namespace  # type: ignore[attr-defined]
