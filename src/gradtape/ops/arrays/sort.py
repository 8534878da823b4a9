"""Sorting: the elements in order, and the order itself.

The order is always the stable one: equal elements stay in the order they came in, and NaN counts as
larger than all numbers. Complex numbers go by their real parts, then by their imaginary parts.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.copies import by_rows
from gradtape.core.define import general
from gradtape.core.op import Facts
from gradtape.core.tensor import Tensor
from gradtape.errors import ShapeError
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.arrays.axes import along
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_choice
from gradtape.ops.family import member
from gradtape.ops.gather import places_along, scatter, take_along_axis
from gradtape.ops.shape import ravel
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

INDEX = np.dtype(np.intp)
_KINDS = ("quicksort", "mergesort", "heapsort", "stable")
# From this many elements on it pays to sort first and look for ties afterwards; if more than one in
# this many elements is tied, they are sorted again.
_LARGE = 1000
_FEW_TIES = 4


# ---- the ops ------------------------------------------------------------------------------------


def comparable(x: Any) -> Any:
    """An array in a dtype that NumPy sorts with NaN last, which it does not with bfloat16."""
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def _backwards(axis: int) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(None, None, -1),)


def _ascending(xp: Any, x: Any, axis: int) -> Any:
    """The stable order of elements along an axis.

    NumPy's unstable sort is faster by a third up to ten times; only equal elements can come in a
    different order, and those are put right afterwards.
    """
    if xp is not np or x.dtype.char not in "fd" or x.size < _LARGE:
        return x.argsort(axis, kind="stable")
    rows = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    order = by_rows(np.argsort, rows)
    values = np.take_along_axis(rows, order, -1)
    earlier = values[..., :-1]
    tied = (values[..., 1:] == earlier) | (earlier != earlier)  # only NaN follows NaN
    if tied.any():
        if np.count_nonzero(tied) > tied.size // _FEW_TIES:
            order = by_rows(functools.partial(np.argsort, kind="stable"), rows)
        else:
            _put_right(order, tied)
    return np.moveaxis(order, -1, axis)


def _put_right(order: Any, tied: Any) -> None:
    """Bring elements that are equal into the order they came in; `tied` are those with the next."""
    inside = np.zeros(order.shape, np.bool_)
    inside[..., :-1] = tied
    first = inside.copy()
    first[..., 1:] &= ~tied
    inside[..., 1:] |= tied
    run = np.cumsum(first)[inside.ravel()]
    members = order[inside]
    order[inside] = members[np.lexsort((members, run))]


def _argsort_forward(xp: Any, x: Any, axis: int, descending: bool) -> Any:
    x = comparable(x)
    if not descending:
        return _ascending(xp, x, axis)
    # From the end, so that equal elements stay in order.
    backwards = _backwards(axis)
    return x.shape[axis] - 1 - _ascending(xp, x[backwards], axis)[backwards]


_argsort = general(
    "argsort",
    _argsort_forward,
    infer=lambda x, axis, descending: Aval(x.shape, INDEX),
)


def _sort_forward(xp: Any, x: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    order = _argsort_forward(xp, x, axis, descending)
    return xp.take_along_axis(x, order, axis), order


def put_along(x: Any, order: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Elements added into zeros of `shape`, at places along an axis: undoes `take_along_axis`."""
    return scatter(x, *places_along(shape, order, axis), shape=shape)


# d sort(x) = dx in the order of x, which is the second result; transpose: back to where it was
sort_both = general(
    "sort",
    _sort_forward,
    infer=lambda x, axis, descending: (x, Aval(x.shape, INDEX)),
    vjps=(lambda ct, out, _x, axis, descending: put_along(ct[0], out[1], axis, _x.shape),),
    jvp=lambda tangents, out, _x, axis, descending: (
        take_along_axis(tangents[0], out[1], axis),
        None,
    ),
    outputs=2,
    facts=Facts(reads="axis"),
)


# ---- public functions ---------------------------------------------------------------------------


_SORTING = {
    "x": "What to sort.",
    "axis": "Along which axis; None sorts the flattened array.",
    "kind": "A name NumPy has for a way of sorting; the result is the same for all of them.",
    "descending": "Whether to put the largest elements first, and NaN before them.",
    "stable": "Whether equal elements have to stay in order, which they do in any case.",
}
_ERRORS = {"AxisError": "There is no such axis.", "ArgumentError": "`kind` is something else."}


@options(_SORTING, raises=_ERRORS)
def _sorted(
    name: str,
    x: ArrayLike,
    /,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> Array:
    """{what} in ascending order along an axis; NaN comes last, ties keep their order.

    The indices that `argsort` gives have no derivative.

    sort:
    >>> gt.sort(np.array([3.0, 1.0, 2.0]))
    array([1., 2., 3.])

    argsort:
    >>> gt.argsort(np.array([3.0, 1.0, 2.0]))
    array([1, 2, 0])
    """
    if kind is not None:
        check_choice(name, _KINDS, kind=kind)
    x, order = as_array(x), name == "argsort"
    # NumPy gives an order for a single element, though `sort` has no axis to sort along.
    x, axis = along(name, ravel(x) if order and not x.shape else x, axis)
    if order:
        return _argsort(x, axis=axis, descending=bool(descending))
    if isinstance(x, np.ndarray) and x.dtype.kind != "V":  # nobody asks for the order
        values = np.sort(x, axis=axis)
        return values[_backwards(axis)] if descending else values
    return sort_both(x, axis=axis, descending=bool(descending))[0]


sort = member("sort", _sorted, what="The elements")
argsort = member("argsort", _sorted, what="The indices of elements")


def sort_complex(x: ArrayLike, /) -> Array:
    """The elements as complex numbers, sorted along the last axis by real, then imaginary parts.

    >>> gt.sort_complex(np.array([2.0, 1.0]))
    array([1.+0.j, 2.+0.j])
    """
    x = as_array(x)
    if x.dtype.kind != "c":
        x = astype(x, np.complex64 if x.dtype.char in "bhBH" else np.complex128)
    return sort(x)


# ---- lexsort ------------------------------------------------------------------------------------


_lexsort = general(
    "lexsort",
    lambda xp, *keys, axis: xp.lexsort(keys, axis),
    infer=lambda *keys, axis: Aval(keys[0].shape, INDEX),
)


def lexsort(keys: Sequence[ArrayLike] | ArrayLike, /, axis: int = -1) -> Array:
    """The indices that sort by several keys, the last one first; has no derivative.

    Args:
        keys: Arrays of one shape, or one array whose first axis numbers the keys. The last key
            decides; where it is equal, the one before it does.
        axis: Along which axis of the keys.

    Raises:
        ShapeError: There is no key, or their shapes differ.
        AxisError: There is no such axis.

    >>> gt.lexsort((np.array([2, 1, 3]), np.array([0, 1, 0])))
    array([0, 2, 1])
    """
    if isinstance(keys, Tensor | np.ndarray):
        keys = [keys[i] for i in range(keys.shape[0] if keys.shape else 0)]
    keys = [as_array(key) for key in keys]
    shapes = {key.shape for key in keys}
    if len(shapes) != 1:
        got = ", ".join(str(key.shape) for key in keys) or "no keys"
        raise ShapeError(f"lexsort: got {got}, expected at least one key, all of one shape")
    return _lexsort(*keys, axis=normalize_axis(axis, len(keys[0].shape), "lexsort"))
