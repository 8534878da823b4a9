"""Numbers in NumPy's arrays of objects: `np.array([c, -s])` of tracked numbers keeps their history.

NumPy asks a 0-d tensor that it puts into an array for an array of its own. While a transform, a
trace or a tape follows the tensor, the answer is an array of objects that holds the tensor itself,
which is a `TrackedNumber` from then on. NumPy then computes element by element, with Python's
operators and with methods that have the names of its functions (`x.sin()`). Ops of gradtape, and
the ends of transforms, make one tensor of such an array (`ops.joined`).

An array copies numbers, and NumPy treats objects in some ways differently from floats. Where that
would change a result, a tracked number behaves as NumPy's numbers do, or raises:

- `x += 1` gives a new number, and leaves the one in the array alone;
- it has no truth value: `np.logical_and` of objects returns one of its operands;
- NaN is not ordered: `np.max` of objects passes over it;
- `np.mean` of objects would convert the sum to its dtype, so it finds none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.aval import Abstract
from gradtape.core.nested import Handle, Nested
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ConversionError, WriteError

WAYS_OUT = (
    "make a tensor of the array by gt.asarray(array), or write gt.asarray([...]) for "
    "np.array([...]), or change the import to `import gradtape.numpy as np`"
)
# Where NumPy computes means and variances of objects.
_MEANS = frozenset({"numpy._core._methods", "numpy.lib._nanfunctions_impl"})


class TrackedNumber(Nested):
    """A 0-d tensor that is an element of an array of objects."""

    __slots__ = ()
    __hash__ = Tensor.__hash__

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the number."""
        if sys._getframe(1).f_globals.get("__name__") in _MEANS:
            raise AttributeError("a number among objects")
        return self.value.dtype  # type: ignore[no-any-return]

    @property
    def real(self) -> TrackedNumber:
        """The number itself: it is real."""
        return self

    @property
    def imag(self) -> float:
        """Zero: the number is real."""
        return 0.0

    def __bool__(self) -> bool:
        raise ConversionError(
            "bool(x): got a number that is an element of an array of objects, whose truth NumPy "
            f"uses in another way than that of floats; compare it, x != 0, or {WAYS_OUT}"
        )

    def check_writable(self, what: str) -> None:
        raise WriteError(
            f"{what}: got a number that is an element of an array, as np.array([x]) makes it, "
            "which would change with it; write to a copy (x * 1)"
        )

    def augment(self, function: Callable[[Any, Any], Any], other: Any) -> Any:
        """`self = function(self, other)` as for NumPy's numbers: a new one."""
        return _number(function(self, other))

    def __round__(self, ndigits: int | None = None) -> Any:
        return _number(np.round(self, ndigits or 0))

    def __floor__(self) -> Any:
        return _number(np.floor(self))

    def __ceil__(self) -> Any:
        return _number(np.ceil(self))

    def __trunc__(self) -> Any:
        return _number(np.trunc(self))


def as_object(tensor: Tensor) -> Any:
    """The array of objects in which NumPy finds a 0-d tensor."""
    if isinstance(tensor, Handle):
        raise ConversionError(
            "np.array: got a view of a tensor as an element, expected a number; write x[0] or "
            "np.sum(x) in place of a reshape, or gt.asarray([...]) for np.array([...])"
        )
    array = np.empty((), object)
    array[()] = _number(tensor)
    return array


def _number(result: Any) -> Any:
    """A real number as a tracked one; results of other kinds as they are."""
    if isinstance(result, tuple):
        return tuple(map(_number, result))
    own = isinstance(result, Tensor) and not isinstance(result, Handle | TrackedNumber)
    if own and not result.shape and result.dtype.kind == "f":
        result.__class__ = TrackedNumber
    return result


def _operator(inherited: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *others: _number(inherited(self, *others))


def _order(inherited: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        for number in (self, other):
            value = innermost(number, show=True) if isinstance(number, Tensor) else number
            if not isinstance(value, Abstract) and np.ndim(value) == 0 and value != value:
                raise ConversionError(
                    "got NaN in an array of tracked numbers, which NumPy does not order as it "
                    f"orders floats; {WAYS_OUT}"
                )
        return inherited(self, other)

    return method


def _method(ufunc: np.ufunc) -> Callable[..., Any]:
    return lambda self, *others: _number(ufunc(self, *others))


def install() -> None:
    """Give tracked numbers their operators, once tensors have theirs, and a method per ufunc."""
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod"):
        for full in (f"__{name}__", f"__r{name}__"):
            setattr(TrackedNumber, full, _operator(getattr(Tensor, full)))
    for name in ("neg", "pos", "abs"):
        setattr(TrackedNumber, f"__{name}__", _operator(getattr(Tensor, f"__{name}__")))
    for name in ("lt", "le", "gt", "ge"):
        setattr(TrackedNumber, f"__{name}__", _order(getattr(Tensor, f"__{name}__")))
    for name, ufunc in vars(np).items():
        if isinstance(ufunc, np.ufunc) and (name == "abs" or name == ufunc.__name__):
            setattr(TrackedNumber, name, _method(ufunc))
