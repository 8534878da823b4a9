"""autograd's helpers for wrapping NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.compat.autograd.mirror import mirror
from gradtape.compat.autograd.tracer import getval, notrace_primitive, primitive
from gradtape.core.aval import aval_of
from gradtape.core.tensor import Tensor
from gradtape.errors import UnsupportedError
from gradtape.locks import load

numpy_version = np.__version__
# Values that a wrapped namespace has as they are.
_UNCHANGED = (float, int, type(None), type)


def wrap_namespace(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Make primitives of the functions of a namespace, which `defvjp` can give rules.

    Args:
        old: The namespace, such as `vars(scipy.special)`.
        new: The namespace to put them into.

    >>> from gradtape.compat.autograd.numpy.numpy_wrapper import wrap_namespace
    >>> wrapped = {}
    >>> wrap_namespace({"double": lambda x: 2 * x, "tau": 6.28}, wrapped)
    >>> wrapped["double"](3.0), wrapped["tau"]
    (6.0, 6.28)
    """
    made: dict[int, Any] = {}
    for name, value in old.items():
        if type(value) in _UNCHANGED:
            new[name] = value
        elif callable(value):
            new[name] = made.setdefault(id(value), primitive(value))


def array_from_args(array_args: Any, array_kwargs: Any, *args: Any) -> Any:
    """The array of some values, with the arguments that `np.array` gets besides."""
    return load("gradtape.numpy").array(args, *array_args, **array_kwargs)


def concatenate_args(axis: int, *args: Any) -> Any:
    """Arrays joined along an axis."""
    return load("gradtape.numpy").concatenate(args, axis)


def _joining(name: str) -> Any:
    """A function of NumPy that joins arrays, which may come from an iterator."""

    def function(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(arrays, "__getitem__"):
            arrays = list(arrays)
        return getattr(load("gradtape.numpy"), name)(arrays, *args, **kwargs)

    function.__name__, function.__doc__ = name, getattr(np, name).__doc__
    return function


column_stack, concatenate = _joining("column_stack"), _joining("concatenate")
dstack, hstack, stack, vstack = map(_joining, ("dstack", "hstack", "stack", "vstack"))


def where(condition: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.where`, which gives Python's numbers and lists if it is given nothing else.

    >>> from gradtape.compat.autograd import numpy as np
    >>> np.where(True, 1, 2)
    1
    """
    args = (*args, *(kwargs[name] for name in ("x", "y") if name in kwargs))
    found = load("gradtape.numpy").where(condition, *args)
    if not args or any(map(_is_array, (condition, *args))):
        return found
    return found.tolist()


def _is_array(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(map(_is_array, x))
    return isinstance(x, Tensor | np.ndarray | np.generic)


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Matrices with some numbers on their diagonals, and zeros elsewhere.

    Args:
        D: The numbers, along the last axis.
        offset: Only 0 is known, here as in autograd.
        axis1: Only -1, likewise.
        axis2: Only -2, likewise.

    Raises:
        UnsupportedError: Another value is asked for.

    >>> from gradtape.compat.autograd import numpy as np
    >>> np.make_diagonal(np.array([1.0, 2.0]), axis1=-1, axis2=-2)
    array([[1., 0.],
           [0., 2.]])
    """
    if (offset, axis1, axis2) != (0, -1, -2):
        raise UnsupportedError(
            f"make_diagonal: got offset={offset}, axis1={axis1}, axis2={axis2}, expected 0, -1 and "
            "-2; move the axes of the result by np.moveaxis"
        )
    size = aval_of(D).shape[-1]
    return D[..., None] * np.eye(size, dtype=aval_of(D).dtype)


@notrace_primitive
def metadata(A: Any) -> tuple[Any, ...]:
    """Shape, number of axes and dtype of an array, and whether it is complex."""
    return np.shape(A), np.ndim(A), np.result_type(A), np.iscomplexobj(A)


# ---- types of integers --------------------------------------------------------------------------


def wrap_intdtype(cls: type) -> Any:
    """A type of integers that makes constants of tensors: `np.int64(t)`."""

    def new(_cls: type, value: Any = 0) -> Any:
        return cls(getval(value))

    return type(cls.__name__, (cls,), {"__new__": new, "__doc__": cls.__doc__})


int8, int16 = wrap_intdtype(np.int8), wrap_intdtype(np.int16)
int32, int64 = wrap_intdtype(np.int32), wrap_intdtype(np.int64)

mirror(globals(), "gradtape.numpy")
