"""`associative_scan`: running results of an associative function, in few rounds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from gradtape import containers
from gradtape.autodiff.arguments import as_function
from gradtape.core.aval import aval_of
from gradtape.core.deferrable import deferrable
from gradtape.errors import AxisError, DTypeError, ShapeError
from gradtape.ops.index import getitem
from gradtape.ops.join import concatenate, stack
from gradtape.ops.rearrange import flip
from gradtape.ops.shape import reshape


@deferrable
def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, *, reverse: bool = False, axis: int = 0
) -> Any:
    """Combine elements with all before them: the k-th result is `x₀ ∘ x₁ ∘ … ∘ xₖ`.

    It takes about twice as many combinations as elements, in a number of rounds that grows with the
    logarithm of the length; all combinations of a round are done by one call.

    Args:
        fn: An associative function of two containers like `elems`, which combines elements all
            along the axis at once: `np.add`, or `lambda a, b: b @ a` for stacked matrices.
        elems: An array, or containers of arrays of the same length along the axis.
        reverse: Whether to begin at the other end.
        axis: The axis to go along.

    Returns:
        Containers like `elems`.

    Raises:
        ShapeError: The lengths differ, there are no arrays, or `fn` returns something else than it
            gets.
        AxisError: An array does not have the axis.

    >>> gt.associative_scan(np.add, np.array([1.0, 2.0, 3.0, 4.0]))
    array([ 1.,  3.,  6., 10.])
    >>> gt.associative_scan(np.maximum, np.array([1.0, 3.0, 2.0]), reverse=True)
    array([3., 3., 2.])
    """
    fn = as_function(fn, "associative_scan")
    leaves, structure = containers.flatten(elems, view=containers.ALL_ARRAYS)
    places = [_axis(leaf, axis, elems, n) for n, leaf in enumerate(leaves)]
    lengths = {aval_of(leaf).shape[a] for leaf, a in zip(leaves, places, strict=True)}
    if len(lengths) != 1:
        found = ", ".join(map(str, sorted(lengths))) or "none"
        raise ShapeError(
            f"associative_scan: got lengths {found} along axis {axis}, expected one length of all"
        )

    def combine(x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        out = fn(containers.unflatten(structure, list(x)), containers.unflatten(structure, list(y)))
        made, own = containers.flatten(out, view=containers.ALL_ARRAYS)
        if own != structure or any(
            aval_of(a).shape != aval_of(b).shape for a, b in zip(made, x, strict=True)
        ):
            raise ShapeError(
                "associative_scan: the function returned other containers or shapes than it got, "
                "expected it to combine two parts of elems into one of the same length"
            )
        return made

    given = [flip(x, a) for x, a in zip(leaves, places, strict=True)] if reverse else leaves
    made = _scanned(combine, given, places)
    if reverse:
        made = [flip(x, a) for x, a in zip(made, places, strict=True)]
    return containers.unflatten(structure, list(made))


def _scanned(
    combine: Callable[[Sequence[Any], Sequence[Any]], list[Any]],
    elems: Sequence[Any],
    axes: Sequence[int],
) -> Sequence[Any]:
    """Combine neighbours, scan the pairs, and combine what came out with the elements between."""
    length = elems[0].shape[axes[0]]
    if length < 2:
        return elems

    def part(values: Sequence[Any], *bounds: int | None) -> list[Any]:
        return [
            getitem(x, (*(slice(None),) * a, slice(*bounds)))
            for x, a in zip(values, axes, strict=True)
        ]

    pairs = combine(part(elems, 0, length - 1, 2), part(elems, 1, None, 2))
    odd = _scanned(combine, pairs, axes)
    first = part(elems, 0, 1)
    if length == 2:
        even: Sequence[Any] = first
    else:
        between = part(elems, 2, None, 2)
        known = part(odd, 0, between[0].shape[axes[0]])
        later = combine(known, between)
        even = [concatenate([x, y], axis=a) for x, y, a in zip(first, later, axes, strict=True)]
    return [_interleaved(x, y, a) for x, y, a in zip(even, odd, axes, strict=True)]


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """Elements of two arrays in turns; the first may have one more."""
    count = odd.shape[axis]
    whole = (slice(None),) * axis
    pairs = stack([getitem(even, (*whole, slice(0, count))), odd], axis=axis + 1)
    shape = (*even.shape[:axis], 2 * count, *even.shape[axis + 1 :])
    made = reshape(pairs, shape)
    if even.shape[axis] == count:
        return made
    return concatenate([made, getitem(even, (*whole, slice(count, None)))], axis=axis)


def _axis(leaf: Any, axis: Any, elems: Any, number: int) -> int:
    shape = aval_of(leaf).shape
    try:
        place = operator.index(axis)
    except TypeError:
        raise DTypeError(f"associative_scan: got axis={axis!r}, expected an integer") from None
    if not -len(shape) <= place < len(shape):
        where = containers.Place("elems", elems, number, view=containers.ALL_ARRAYS)
        raise AxisError(f"associative_scan: {where} has shape {shape} and no axis {place}")
    return place % len(shape)
