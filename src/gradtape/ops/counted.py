"""Making tensors that count: arange, linspace, and the grids of such axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.aval import aval_of
from gradtape.core.define import broadcast_sizes
from gradtape.core.state import adopted
from gradtape.core.tensor import Tensor, concrete
from gradtape.errors import ArgumentError
from gradtape.ops.arguments import as_array, as_dtype, as_integer, normalize_axis
from gradtape.ops.cast import astype, copy as copy_of
from gradtape.ops.checks import check_choice, check_least
from gradtape.ops.creation import asarray
from gradtape.ops.device import check_device
from gradtape.ops.inspection import result_type
from gradtape.ops.rounding import floor
from gradtape.ops.shape import broadcast_to, moveaxis, reshape
from gradtape.typing import Array, ArrayLike


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a tensor of evenly spaced numbers, from `start` (0) up to but without `stop`.

    Args:
        start: Where to start; if it is the only number, where to stop.
        stop: Where to stop.
        step: The distance between numbers.
        dtype: Its dtype; as NumPy chooses if not given.
        device: None or "cpu", where arrays are made.
        requires_grad: Whether gradients are to be taken for it.

    Raises:
        ArgumentError: The step is 0.
        ConversionError: A tracked tensor got; use `gt.linspace`, which is differentiable.

    >>> gt.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    check_device(device, "arange")
    first, last, distance = (
        concrete(bound, "arange (gt.linspace is differentiable)")
        if isinstance(bound, Tensor)
        else bound
        for bound in ((0, start, step) if stop is None else (start, stop, step))
    )
    kind = None if dtype is None else as_dtype(dtype, "arange")
    try:
        array = np.arange(first, last, distance, dtype=kind)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise ArgumentError(f"arange: got {start}, {stop}, {step}; {error}") from error
    return Tensor(array).set_requires_grad(requires_grad)


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """Make a tensor of `num` evenly spaced numbers; differentiable in `start` and `stop`.

    Args:
        start: The first number, or an array of first numbers.
        stop: The last number, or an array of last numbers.
        num: How many.
        endpoint: Whether `stop` is included.
        retstep: Whether to return the distance between the numbers as well.
        dtype: Its dtype; the floating dtype of the bounds if not given.
        axis: The axis of the result along which the numbers run.
        device: None or "cpu", where arrays are made.
        requires_grad: Whether gradients are to be taken for it.

    Returns:
        The tensor; with `retstep` a tuple of it and the distance.

    Raises:
        ArgumentError: `num` is negative.
        ShapeError: The bounds do not broadcast together.

    >>> gt.linspace(0, 1, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    check_device(device, "linspace")
    num = as_integer(num, "linspace", "num")
    dtype = None if dtype is None else as_dtype(dtype, "linspace")
    check_least("linspace", 0, num=num)
    # Python's numbers do not decide the dtype.
    first, last = (x if type(x) in (int, float) else asarray(x) for x in (start, stop))
    floating = result_type(*(x.dtype for x in (first, last) if isinstance(x, Tensor)), 0.0)
    shape = broadcast_sizes(aval_of(first).shape, aval_of(last).shape)
    axis = normalize_axis(axis, len(shape) + 1, "linspace")
    if isinstance(start, Tensor) or isinstance(stop, Tensor):
        # start·(1 − t) + stop·t is exact at both ends.
        t = np.linspace(0.0, 1.0, num, endpoint, dtype=floating).reshape(num, *(1,) * len(shape))
        made = first * (1 - t) + last * t
        made = moveaxis(made, 0, axis)
        if dtype is not None and dtype.kind in "iu":
            made = floor(made)  # as NumPy does, also below 0
        made = astype(made, floating if dtype is None else dtype, copy=False)
    else:
        made = Tensor(np.linspace(start, stop, num, endpoint, dtype=dtype, axis=axis))
    made = made.set_requires_grad() if requires_grad else made
    if not retstep:
        return made
    return made, asarray((last - first) / (num - endpoint) if num > endpoint else np.nan)


def meshgrid(
    *axes: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """Return one array per axis of a grid, holding its coordinate at every point of the grid.

    Args:
        *axes: The coordinates along each axis, of one axis each.
        copy: Whether results have memory of their own.
        sparse: Whether results have size 1 along the axes on which they do not depend.
        indexing: "xy" has the first two axes of the results swapped, "ij" has them in order.

    Returns:
        A tuple of as many arrays as there are axes.

    Raises:
        ArgumentError: `indexing` is something else.

    >>> gt.meshgrid(np.array([1.0, 2.0]), np.array([3.0, 4.0]))[1]
    array([[3., 3.],
           [4., 4.]])
    """
    check_choice("meshgrid", ("xy", "ij"), indexing=indexing)
    order = list(range(len(axes)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    flat = [reshape(adopted(as_array(axis)), -1) for axis in axes]
    full_shape = tuple(flat[i].shape[0] for i in order)
    results = []
    for place, axis in zip(order, flat, strict=True):
        grid = reshape(axis, tuple(-1 if i == place else 1 for i in range(len(order))))
        grid = grid if sparse else broadcast_to(grid, full_shape)
        results.append(copy_of(grid) if copy else grid)
    return tuple(results)
