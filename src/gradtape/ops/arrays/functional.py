"""Functions that apply another function: along an axis, over axes, to every element."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, ShapeError, UnsupportedError, a_type
from gradtape.ops.arguments import as_array, normalize_axis
from gradtape.ops.cast import astype
from gradtape.ops.index import getitem
from gradtape.ops.join import stack
from gradtape.ops.like import zeros_like
from gradtape.ops.shape import broadcast_arrays, expand_dims, moveaxis, reshape
from gradtape.typing import Array, ArrayLike


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, /, *args: Any, **kwargs: Any
) -> Array:
    """The results of a function of vectors, for every vector along an axis.

    It is called for one vector after the other, as in NumPy; `gt.vmap` calls it once for all.

    Args:
        func1d: The function; its result is a number or an array.
        axis: The axis.
        arr: The vectors.
        *args: Further arguments of the function.
        **kwargs: Those by name.

    Raises:
        AxisError: There is no such axis.
        ShapeError: There are no vectors.

    >>> gt.apply_along_axis(lambda v: v[-1] - v[0], 1, np.array([[1.0, 4.0], [2.0, 3.0]]))
    array([3., 1.])
    """
    arr = as_array(arr)
    axis = normalize_axis(axis, len(arr.shape), "apply_along_axis")
    rows = moveaxis(arr, axis, -1)
    around = rows.shape[:-1]
    if 0 in around:
        raise ShapeError(f"apply_along_axis: got shape {arr.shape}, expected at least one vector")
    results = [as_array(func1d(getitem(rows, i), *args, **kwargs)) for i in np.ndindex(around)]
    out = reshape(stack(results), (*around, *results[0].shape))
    # The result for a vector replaces it.
    count = len(results[0].shape)
    return moveaxis(out, tuple(range(-count, 0)), tuple(range(axis, axis + count)))


def apply_over_axes(
    func: Callable[[Any, int], Any], x: ArrayLike, /, axes: int | Sequence[int]
) -> Array:
    """The result of a function of an array and an axis, applied for one axis after the other.

    Args:
        func: The function; it keeps the number of axes or removes its axis.
        x: The array.
        axes: The axes.

    Raises:
        ShapeError: The function gives another number of axes.

    >>> gt.apply_over_axes(gt.sum, np.ones((2, 3)), [0, 1])
    array([[6.]])
    """
    x = as_array(x)
    ndim = len(x.shape)
    for axis in axes if isinstance(axes, Sequence | np.ndarray) else (axes,):
        axis = normalize_axis(axis, ndim, "apply_over_axes")
        out = as_array(func(x, axis))
        if len(out.shape) == ndim - 1:
            out = expand_dims(out, axis)
        if len(out.shape) != ndim:
            raise ShapeError(
                f"apply_over_axes: the function gave shape {out.shape} for {x.shape}, expected as "
                "many axes, or one less"
            )
        x = out
    return x


def vectorize(
    pyfunc: Callable[..., Any],
    otypes: Any = None,
    doc: str | None = None,
    excluded: Collection[int | str] | None = None,
    cache: bool = False,
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function of numbers as a function of arrays, element by element, as `np.vectorize`.

    It is called for one element after the other; `gt.vmap` calls it once for all.

    Args:
        pyfunc: The function; its result is a number, or a tuple of them.
        otypes: The dtypes of the results, if they are to be cast; needed for arrays without
            elements.
        doc: The docstring of the result, if not that of the function.
        excluded: Arguments that are passed as they are, by position or by name.
        cache: Has no effect: the function is called once for each element in any case.
        signature: Only None; `gt.vmap` takes functions of arrays.

    Raises:
        UnsupportedError: `signature` is given.
        ShapeError: There are no elements, and `otypes` is not given.

    >>> step = gt.vectorize(lambda x: x * x if x > 1 else 0 * x)
    >>> gt.grad(lambda x: step(x).sum())(np.array([0.5, 3.0]))
    array([0., 6.])
    """
    if not callable(pyfunc):
        raise ArgumentError(f"vectorize: got {a_type(pyfunc)}, expected a function")
    if signature is not None:
        raise UnsupportedError("vectorize: got signature=; use gt.vmap for functions of arrays")
    types = None if otypes is None else [np.dtype(one) for one in otypes]
    whole = frozenset(excluded or ())

    @functools.wraps(pyfunc)
    def function(*args: Any, **options: Any) -> Any:
        # Arguments by their place or name, and which of them are split into elements.
        given: dict[Any, Any] = {**dict(enumerate(args)), **options}
        split = [key for key in given if key not in whole]
        arrays = broadcast_arrays(*(as_array(given[key]) for key in split))
        shape = arrays[0].shape if arrays else ()
        if 0 in shape:
            if types is None:
                raise ShapeError(
                    f"vectorize: got shape {shape}, expected at least one element, or otypes="
                )
            empty = tuple(zeros_like(arrays[0], dtype) for dtype in types)
            return empty if len(empty) > 1 else empty[0]
        found = []
        for i in np.ndindex(shape):
            one = given | {key: getitem(x, i) for key, x in zip(split, arrays, strict=True)}
            by_name = {name: one[name] for name in options}
            found.append(pyfunc(*(one[place] for place in range(len(args))), **by_name))
        several = isinstance(found[0], tuple)
        columns = zip(*found, strict=True) if several else [found]
        results = [reshape(stack([as_array(one) for one in column]), shape) for column in columns]
        if types is not None:
            results = [astype(x, dtype) for x, dtype in zip(results, types, strict=True)]
        return tuple(results) if several else results[0]

    function.__doc__ = doc or pyfunc.__doc__
    return function
