"""Updates that return a new array, as JAX writes them: `x.at[index].add(values)`.

An index whose elements may repeat is turned into positions in the flattened array. Sums and
extremes over the repetitions are ops of their own (`gather.scatter`, `scatter.scatter_extreme`);
products are made of multiplications, so that derivatives are right at zeros, to any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import EllipsisType
from typing import Any

import numpy as np

from gradtape.core.state import adopted, values_read
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, IndexingError, UnsupportedError
from gradtape.ops.arguments import ARRAYS, as_array, real_only
from gradtape.ops.arithmetic import add, divide, multiply, negative, power
from gradtape.ops.arrays.sort import argsort
from gradtape.ops.arrays.ufunc_methods import turns
from gradtape.ops.assign import assign_at, cast_value, one_for_all, setitem, spread_value
from gradtape.ops.cast import astype, copy
from gradtape.ops.comparison import equal
from gradtape.ops.gather import gather_leading, scatter
from gradtape.ops.index import getitem, index_positions, items_by_axis
from gradtape.ops.join import concatenate
from gradtape.ops.pad_modes import pad
from gradtape.ops.scatter import scatter_extreme
from gradtape.ops.select import clip, maximum, minimum, where
from gradtape.ops.shape import reshape
from gradtape.typing import Array, ArrayLike

# Combines a part of an array with values of its shape.
Combine = Callable[[Any, Any], Any]
# Combines a flat array with flat values at positions in it, of which some may be equal.
AtPositions = Callable[[Any, Any, Any], Any]

_BASIC = (int, np.integer, slice, EllipsisType)
_MODES = (None, "promise_in_bounds", "clip", "drop", "fill")
_OF_MODES = '"promise_in_bounds", "clip", "drop" or "fill"'


def at(x: ArrayLike, /) -> At:
    """The array to be indexed for an update that returns a new one, as `x.at` in JAX.

    `gt.at(x)[i].set(v)` takes arrays and tensors alike. Tensors have it as an attribute, too:
    `x.at[i].set(v)`.

    Args:
        x: An array or a tensor, which is not changed.

    Returns:
        An object to be indexed in brackets; what comes out has the methods `set`, `add`,
        `subtract`, `multiply`, `divide`, `power`, `min`, `max`, `apply` and `get`.

    >>> x = np.array([1.0, 2.0, 3.0])
    >>> gt.at(x)[1:].set(0.0), gt.at(x)[[0, 0, 2]].add(10.0)
    (array([1., 0., 0.]), array([21.,  2., 13.]))
    >>> gt.grad(lambda x: np.sum(x.at[0].multiply(x[1])))(x)
    array([2., 2., 1.])
    """
    return At(as_array(x))


class At:
    """`x.at`, to be indexed in brackets."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Part:
        return Part(self._array, index)

    def __repr__(self) -> str:
        return f"<{self._array!r}.at, to be indexed: x.at[i].set(value)>"


class Part:
    """A part of an array, `x.at[index]`, with methods that return the array with it changed.

    All of them take these keywords:

    - `mode`: What becomes of integers out of bounds. By default, and with "promise_in_bounds", they
      raise. "clip" takes the element at the end, "drop" (or "fill") leaves the update out.
    - `indices_are_sorted`, `unique_indices`: Hints of JAX's, which are not needed. `apply` alone
      uses the second, in compiled code.
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Any, index: Any) -> None:
        self._array = array
        self._index = index

    def set(self, values: ArrayLike, /, **options: Any) -> Array:
        """`x[index] = values`. Where an index repeats, the last value remains.

        >>> gt.at(np.zeros(3))[[0, 2]].set([1.0, 2.0])
        array([1., 0., 2.])
        """
        values = values.fresh() if isinstance(values, Tensor) else values
        within = _Bounds(self._array, self._index, "at[...].set", options)
        return within.cropped(setitem(within.array, values, within.index))

    def add(self, values: ArrayLike, /, **options: Any) -> Array:
        """`x[index] += values`. Where an index repeats, all values are added.

        >>> gt.at(np.zeros(3))[[0, 0, 2]].add([1.0, 2.0, 3.0])
        array([3., 0., 3.])
        """
        return self._combined("add", add, _added, values, options)

    def subtract(self, values: ArrayLike, /, **options: Any) -> Array:
        """`x[index] -= values`. Where an index repeats, all values are subtracted.

        >>> gt.at(np.zeros(3))[[0, 0, 2]].subtract([1.0, 2.0, 3.0])
        array([-3.,  0., -3.])
        """
        values = negative(_in_dtype(values, self._array.dtype, "at[...].subtract"))
        return self._combined("subtract", add, _added, values, options)

    def multiply(self, values: ArrayLike, /, **options: Any) -> Array:
        """`x[index] *= values`. Where an index repeats, all values are multiplied.

        >>> gt.at(np.ones(3))[[0, 0, 2]].multiply([2.0, 3.0, 4.0])
        array([6., 1., 4.])
        """
        return self._combined("multiply", multiply, _multiplied, values, options)

    def divide(self, values: ArrayLike, /, **options: Any) -> Array:
        """`x[index] /= values`. Where an index repeats, it is divided by all values.

        Raises:
            DTypeError: The array holds integers or truth values, but quotients are floats.

        >>> gt.at(np.ones(3))[[0, 0, 2]].divide([2.0, 2.0, 5.0])
        array([0.25, 1.  , 0.2 ])
        """
        if self._array.dtype.kind in "biu":
            raise DTypeError(
                f"at[...].divide: got an array of {self._array.dtype}, expected a floating or "
                "complex one, as quotients are not integers; use x.astype(float) first"
            )
        return self._combined("divide", divide, _divided, values, options)

    def power(self, values: ArrayLike, /, **options: Any) -> Array:
        """`x[index] **= values`. Where an index repeats, the power is the product of the values.

        >>> gt.at(np.array([2.0, 3.0]))[[0, 0]].power([2.0, 3.0])
        array([64.,  3.])
        """
        return self._combined("power", power, _raised, values, options)

    def min(self, values: ArrayLike, /, **options: Any) -> Array:
        """The smallest of `x[index]` and all values that go there. Ties share the gradient.

        >>> gt.at(np.zeros(3))[[0, 0, 2]].min([-1.0, -2.0, 3.0])
        array([-2.,  0.,  0.])
        """
        return self._extreme("min", minimum, values, options)

    def max(self, values: ArrayLike, /, **options: Any) -> Array:
        """The largest of `x[index]` and all values that go there. Ties share the gradient.

        >>> gt.at(np.zeros(3))[[0, 0, 2]].max([1.0, 2.0, -3.0])
        array([2., 0., 0.])
        """
        return self._extreme("max", maximum, values, options)

    def apply(self, function: Callable[[Any], Any], /, **options: Any) -> Array:
        """`x[index] = function(x[index])`. Where an index repeats, it is applied as many times.

        Args:
            function: A function that goes by elements, such as `np.exp`.
            **options: As of the others. With `unique_indices=True` it is applied once, also where
                compiled code cannot know whether indices repeat.

        Raises:
            UnsupportedError: In compiled or batched code it is not known how often indices repeat.

        >>> gt.at(np.array([2.0, 3.0]))[[0, 0]].apply(np.square)
        array([16.,  3.])
        """
        name = "at[...].apply"
        once = bool(options.get("unique_indices"))
        within = _Bounds(self._array, self._index, name, options)
        x, index = within.array, within.index
        if one_for_all(index, 0.0, x.shape):
            return where(index, function(where(index, x, 1)), x)
        known = _repetitions(x, index, name)
        if known is None and not once:
            raise UnsupportedError(
                f"{name}: got indices that are not known before the code runs, expected arrays; if "
                "none repeats, say so: unique_indices=True"
            )
        if known is None or known == 1:
            return within.cropped(setitem(x, function(getitem(x, index)), index))
        positions = reshape(index_positions(x.shape, index, name), -1)
        flat = reshape(x, -1)
        for turn in turns(positions, name):
            places = getitem(positions, turn)
            flat = setitem(flat, function(getitem(flat, places)), places)
        return within.cropped(reshape(flat, x.shape))

    def get(self, *, fill_value: Any = None, **options: Any) -> Array:
        """`x[index]`, as a new array.

        Args:
            fill_value: With `mode="fill"`, what is read out of bounds. The default is NaN; for
                integers the least number there is, or the largest of unsigned ones.
            **options: As of the others.

        >>> gt.at(np.array([1.0, 2.0]))[[0, 5]].get(mode="fill", fill_value=0.0)
        array([1., 0.])
        """
        if fill_value is not None and options.get("mode") not in ("fill", "drop"):
            raise ArgumentError(
                f'at[...].get: got fill_value={fill_value!r}, expected mode="fill" with it'
            )
        dtype = self._array.dtype
        filler = _nothing(dtype) if fill_value is None else fill_value
        within = _Bounds(self._array, self._index, "at[...].get", options, filler)
        return copy(getitem(within.array, within.index))

    def _combined(
        self, name: str, combine: Combine, repeated: AtPositions, values: Any, options: Any
    ) -> Any:
        """The array with a part combined with values."""
        name = f"at[...].{name}"
        within = _Bounds(self._array, self._index, name, options)
        x, index = within.array, within.index
        values = _in_dtype(values, x.dtype, name)
        if one_for_all(index, values, x.shape):
            # Elsewhere it is computed with 1, which has a derivative everywhere.
            return where(_mask(index, x), combine(where(_mask(index, x), x, 1), values), x)
        products = repeated in (_multiplied, _divided, _raised)
        if _is_basic(index) or (products and _repetitions(x, index, name) == 1):
            part = getitem(x, index)
            new = combine(part, spread_value(values, part.shape, name))
            return within.cropped(setitem(x, new, index))
        positions = index_positions(x.shape, index, name)
        flat = reshape(spread_value(values, positions.shape, name), -1)
        made = repeated(reshape(x, -1), flat, reshape(positions, -1))
        return within.cropped(reshape(made, x.shape))

    def _extreme(self, name: str, combine: Combine, values: Any, options: Any) -> Any:
        real_only(f"at[...].{name}", self._array)

        def repeated(x: Any, values: Any, positions: Any) -> Any:
            return scatter_extreme(x, values, positions, largest=name == "max")

        return self._combined(name, combine, repeated, values, options)


def _in_dtype(values: Any, dtype: np.dtype[Any], name: str) -> Any:
    """Values as an array of a dtype; a Python number, too."""
    values = cast_value(values, dtype, name)
    return adopted(values) if hasattr(values, "dtype") else np.asarray(values, dtype)


# ---- places that repeat -------------------------------------------------------------------------


def _repetitions(x: Any, index: Any, name: str) -> int | None:
    """How often a place is selected at most; None if that is not known."""
    if _is_basic(index):
        return 1
    positions = index_positions(x.shape, index, name)
    known = positions.value if type(positions) is Tensor else positions
    if isinstance(known, Tensor):
        return None
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, ARRAYS):
            values_read(item)
    return int(np.unique(known, return_counts=True)[1].max(initial=1))


def _is_basic(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return all(item is None or isinstance(item, _BASIC) for item in items)


def _added(x: Any, values: Any, positions: Any) -> Any:
    return x + scatter(values, positions, shape=x.shape)


def _multiplied(x: Any, values: Any, positions: Any) -> Any:
    return x * _products(x, values, positions)


def _divided(x: Any, values: Any, positions: Any) -> Any:
    return x / _products(x, values, positions)


def _raised(x: Any, values: Any, positions: Any) -> Any:
    reached = assign_at(np.zeros(x.shape, np.bool_), True, positions)
    return where(reached, power(where(reached, x, 1), _products(x, values, positions)), x)


def _products(x: Any, values: Any, positions: Any) -> Any:
    """For each element of `x` the product of the values that go there; 1 where there are none."""
    order = argsort(positions, stable=True)
    positions, values = gather_leading(positions, order), gather_leading(values, order)
    width = 1
    while width < positions.shape[0]:
        # What goes to the same place stands side by side. Each is multiplied with the product of
        # up to `width` before it; in the end the last one holds all.
        later, earlier = slice(width, None), slice(0, -width)
        same = equal(getitem(positions, later), getitem(positions, earlier))
        before = where(same, getitem(values, earlier), 1)
        first = getitem(values, slice(0, width))
        values = concatenate([first, getitem(values, later) * before])
        width *= 2
    return assign_at(np.ones(x.shape, x.dtype), values, positions)


def _mask(mask: Any, x: Any) -> Any:
    return reshape(mask, (*mask.shape, *(1,) * (len(x.shape) - len(mask.shape))))


# ---- indices out of bounds ----------------------------------------------------------------------


class _Bounds:
    """An array and an index into it, of which the mode has put all integers within bounds.

    To drop what is out of bounds, the array gets one more element along each axis that integers
    index; they go there.

    Attributes:
        array: The array, larger if something may be dropped.
        index: The index.
    """

    def __init__(
        self, array: Any, index: Any, name: str, options: dict[str, Any], filler: Any = 1
    ) -> None:
        mode = _mode(name, **options)
        self.array, self.index = array, index
        self._shape = array.shape
        is_mask = isinstance(index, ARRAYS) and index.dtype == np.bool_
        if mode == "promise_in_bounds" or is_mask:
            return
        items, longer = [], {}
        for item, axis in items_by_axis(index, array.shape, name):
            if axis is None or isinstance(item, slice):
                items.append(item)
            elif mode == "clip":
                items.append(_clipped(item, array.shape[axis], name))
            else:
                items.append(_or_end(item, array.shape[axis]))
                longer[axis] = (0, 1)
        self.index = tuple(items)
        if longer:
            cast_value(filler, array.dtype, name)
            self.array = pad(array, longer, constant_values=filler)

    def cropped(self, made: Any) -> Any:
        """An array like the larger one, without what was dropped."""
        if made.shape == self._shape:
            return made
        return copy(getitem(made, tuple(slice(0, n) for n in self._shape)))


def _mode(
    name: str,
    *,
    mode: str | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    **others: Any,
) -> str:
    """The mode, checked, among the options of a call."""
    if others:
        raise ArgumentError(
            f"{name}: got {next(iter(others))}=, expected mode=, indices_are_sorted= or "
            "unique_indices="
        )
    if mode not in _MODES:
        advice = "; use index % n" if mode == "wrap" else ""
        raise ArgumentError(f"{name}: got mode={mode!r}, expected {_OF_MODES}{advice}")
    return mode or "promise_in_bounds"


def _counted(item: Any, size: int) -> Any:
    """Integers counted from the front."""
    if isinstance(item, int):
        return item + size if item < 0 else item
    item = astype(adopted(item), np.intp, copy=False)
    return where(item < 0, item + size, item)


def _clipped(item: Any, size: int, name: str) -> Any:
    if not size:
        raise IndexingError(f"{name}: got an axis of size 0, expected an element to clip to")
    item = _counted(item, size)
    return min(max(item, 0), size - 1) if isinstance(item, int) else clip(item, 0, size - 1)


def _or_end(item: Any, size: int) -> Any:
    """Integers within bounds, and `size` in place of others."""
    item = _counted(item, size)
    if isinstance(item, int):
        return item if 0 <= item < size else size
    return where((item >= 0) & (item < size), item, size)


def _nothing(dtype: np.dtype[Any]) -> Any:
    """What is read out of bounds by default."""
    if dtype.kind == "b":
        return True
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return math.nan
