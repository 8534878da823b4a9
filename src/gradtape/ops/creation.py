"""Making tensors: from data, filled, counted. They return tensors whatever they are given."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.backends import array_module
from gradtape.core.aval import aval_of
from gradtape.core.define import broadcast_sizes, functions, public
from gradtape.core.op import registry
from gradtape.core.tensor import Tensor, concrete, is_extended_float
from gradtape.errors import ArgumentError, ConversionError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, as_dtype, as_shape, normalize_axis
from gradtape.ops.cast import astype, copy as copy_of
from gradtape.ops.shape import broadcast_to, moveaxis, reshape
from gradtape.typing import Array, ArrayLike, Shape

# ---- from data ----------------------------------------------------------------------------------


def _holds_tensor(data: Any) -> bool:
    return isinstance(data, list | tuple) and any(
        isinstance(item, Tensor) or _holds_tensor(item) for item in data
    )


def _array(data: Any, dtype: Any, name: str, *, copy: bool | None) -> Any:
    """`data` as an array of numbers."""
    if _holds_tensor(data):
        raise ConversionError(f"{name}: came a list of tensors; join them with gt.stack")
    try:
        array = array_module(data).array(data, dtype=dtype, copy=copy)
    except TypeError as error:
        raise DTypeError(f"{name}: came {type(data).__name__}, dtype {dtype}; {error}") from error
    except ValueError as error:
        raise ShapeError(f"{name}: {error}") from error
    if array.dtype.kind not in "biufc" and not is_extended_float(array.dtype):
        raise DTypeError(f"{name}: came elements of dtype {array.dtype}; needed numbers")
    return array


@public()
def tensor(data: ArrayLike, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Make a tensor that holds a copy of the data.

    Args:
        data: Numbers, nested sequences of numbers, an array, or a tensor without history.
        dtype: Its dtype; as NumPy chooses if not given, so Python floats give float64.
        requires_grad: Whether gradients are to be taken for it.

    Raises:
        ConversionError: The data is a tensor that is being recorded, whose history a copy of the
            value would lose, or holds tensors.
        DTypeError: The data are not numbers; or a gradient is required of integers.
        ShapeError: The data is ragged.

    >>> gt.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    if isinstance(data, Tensor):
        advice = "tensor (gt.asarray passes a tensor on, gt.copy copies it with its history)"
        data = concrete(data, advice)
    array = _array(data, dtype, "tensor", copy=True)
    return Tensor(array).set_requires_grad(requires_grad)


@public()
def asarray(data: ArrayLike, /, dtype: Any = None, *, copy: bool | None = None) -> Tensor:
    """Return the data as a tensor, without copying if possible; a tensor keeps its history.

    Args:
        data: A tensor, an array, numbers or nested sequences of numbers.
        dtype: Its dtype; that of the data if not given.
        copy: True copies always, False raises where a copy is needed.

    Raises:
        ConversionError: The data holds tensors, or needs a copy that `copy=False` forbids.
        DTypeError: The data are not numbers.

    >>> x = gt.ones(2, requires_grad=True)
    >>> gt.asarray(x) is x
    True
    """
    if not isinstance(data, Tensor):
        return Tensor(_array(data, dtype, "asarray", copy=copy))
    if dtype is not None and data.dtype != np.dtype(dtype):
        if copy is False:
            raise ConversionError(f"asarray: {data.dtype} to {np.dtype(dtype)} needs a copy")
        return astype(data, dtype)  # type: ignore[no-any-return]
    return copy_of(data) if copy else data


# ---- filled -------------------------------------------------------------------------------------


@public()
def zeros(shape: Shape, dtype: Any = None, *, requires_grad: bool = False) -> Tensor:
    """Make a tensor of zeros.

    Args:
        shape: The size or sizes.
        dtype: Its dtype; float64 if not given.
        requires_grad: Whether gradients are to be taken for it.

    Raises:
        DTypeError: There is no such dtype; or a gradient is required of integers.
        ShapeError: The sizes are not integers from 0.

    >>> gt.zeros((2, 2), dtype=gt.float32)
    tensor([[0., 0.],
            [0., 0.]], dtype=float32)
    """
    array = np.zeros(as_shape(shape, "zeros"), as_dtype(dtype, "zeros"))
    return Tensor(array).set_requires_grad(requires_grad)


@public()
def ones(shape: Shape, dtype: Any = None, *, requires_grad: bool = False) -> Tensor:
    """Make a tensor of ones; options as of `zeros`.

    >>> gt.ones(3, requires_grad=True)
    tensor([1., 1., 1.], requires_grad=True)
    """
    array = np.ones(as_shape(shape, "ones"), as_dtype(dtype, "ones"))
    return Tensor(array).set_requires_grad(requires_grad)


@public()
def empty(shape: Shape, dtype: Any = None, *, requires_grad: bool = False) -> Tensor:
    """Make a tensor without setting its elements; options as of `zeros`.

    >>> gt.empty((2, 3)).shape
    (2, 3)
    """
    array = np.empty(as_shape(shape, "empty"), as_dtype(dtype, "empty"))
    return Tensor(array).set_requires_grad(requires_grad)


@public()
def full(
    shape: Shape, fill_value: ArrayLike, dtype: Any = None, *, requires_grad: bool = False
) -> Tensor:
    """Make a tensor filled with a value; differentiable in the value.

    Args:
        shape: The size or sizes.
        fill_value: A number, or an array or tensor that broadcasts to the shape.
        dtype: Its dtype; that of the value if not given.
        requires_grad: Whether gradients are to be taken for it.

    Raises:
        ShapeError: The value does not broadcast to the shape.

    >>> gt.full(3, 2.0)
    tensor([2., 2., 2.])
    """
    filled = broadcast_to(asarray(fill_value, dtype), as_shape(shape, "full"))
    made: Tensor = copy_of(filled)  # memory of its own, not one number under many indices
    return made.set_requires_grad() if requires_grad else made


@public()
def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, requires_grad: bool = False
) -> Tensor:
    """Make a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: The number of rows.
        M: The number of columns; as many as rows if not given.
        k: Which diagonal; positive ones lie above the main diagonal.
        dtype: Its dtype; float64 if not given.
        requires_grad: Whether gradients are to be taken for it.

    Raises:
        ShapeError: A number of rows or columns is negative.

    >>> gt.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = as_shape((N, N if M is None else M), "eye")
    return Tensor(np.eye(rows, columns, k, as_dtype(dtype, "eye"))).set_requires_grad(requires_grad)


@public()
def identity(n: int, dtype: Any = None, *, requires_grad: bool = False) -> Tensor:
    """Make the identity matrix with `n` rows; options as of `zeros`.

    >>> gt.identity(2, gt.int64)
    tensor([[1, 0],
            [0, 1]])
    """
    return eye(n, dtype=dtype, requires_grad=requires_grad)


# ---- counted ------------------------------------------------------------------------------------


@public()
def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    requires_grad: bool = False,
) -> Tensor:
    """Make a tensor of evenly spaced numbers, from `start` (0) up to but without `stop`.

    Args:
        start: Where to start; if it is the only number, where to stop.
        stop: Where to stop.
        step: The distance between numbers.
        dtype: Its dtype; as NumPy chooses if not given.
        requires_grad: Whether gradients are to be taken for it.

    Raises:
        ArgumentError: The step is 0.
        ConversionError: A tracked tensor came; use `gt.linspace`, which is differentiable.

    >>> gt.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
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
        raise ArgumentError(f"arange: came {start}, {stop}, {step}; {error}") from error
    return Tensor(array).set_requires_grad(requires_grad)


@public(np.linspace)
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    requires_grad: bool = False,
) -> Any:
    """Make a tensor of `num` evenly spaced numbers; differentiable in `start` and `stop`.

    Args:
        start: The first number, or an array of first numbers.
        stop: The last number, or an array of last numbers.
        num: How many.
        endpoint: Whether `stop` is included.
        retstep: Whether to return the distance of the numbers as well.
        dtype: Its dtype; the floating dtype of the bounds if not given.
        axis: The axis of the result along which the numbers run.
        requires_grad: Whether gradients are to be taken for it.

    Returns:
        The tensor; with `retstep` a tuple of it and the distance.

    Raises:
        ArgumentError: `num` is negative.
        ShapeError: The bounds do not broadcast together.

    >>> gt.linspace(0, 1, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if operator.index(num) < 0:
        raise ArgumentError(f"linspace: came num={num}; needed a number of elements >= 0")
    # Python's numbers do not decide the dtype.
    first, last = (x if type(x) in (int, float) else asarray(x) for x in (start, stop))
    floating = np.result_type(*(x.dtype for x in (first, last) if isinstance(x, Tensor)), 0.0)
    shape = broadcast_sizes(aval_of(first).shape, aval_of(last).shape)
    if isinstance(start, Tensor) or isinstance(stop, Tensor):
        # start·(1 − t) + stop·t is exact at both ends.
        t = np.linspace(0.0, 1.0, num, endpoint, dtype=floating).reshape(num, *(1,) * len(shape))
        made = first * (1 - t) + last * t
        made = moveaxis(made, 0, normalize_axis(axis, len(shape) + 1, "linspace"))
        made = astype(made, floating if dtype is None else dtype, copy=False)
    else:
        made = Tensor(np.linspace(start, stop, num, endpoint, dtype=dtype, axis=axis))
    made = made.set_requires_grad() if requires_grad else made
    if not retstep:
        return made
    return made, asarray((last - first) / (num - endpoint) if num > endpoint else np.nan)


@public(np.meshgrid)
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
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f'meshgrid: came indexing={indexing!r}; needed "xy" or "ij"')
    order = list(range(len(axes)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    flat = [reshape(as_array(axis), -1) for axis in axes]
    full_shape = tuple(flat[i].shape[0] for i in order)
    results = []
    for place, axis in zip(order, flat, strict=True):
        grid = reshape(axis, tuple(-1 if i == place else 1 for i in range(len(order))))
        grid = grid if sparse else broadcast_to(grid, full_shape)
        results.append(copy_of(grid) if copy else grid)
    return tuple(results)


@public(np.copyto)
def copyto(dst: Any, src: ArrayLike, casting: str = "same_kind", where: Any = True) -> None:
    """Write `src` into `dst`, as NumPy does; an array cannot take in the history of a tensor.

    `np.full(3, x)` and `array.fill(x)` are of this kind; `gt.full` is differentiable.

    Raises:
        ConversionError: `dst` is an array and `src` a tensor that is being recorded.

    >>> x = gt.zeros(2)
    >>> np.copyto(x, 3.0)
    >>> x
    tensor([3., 3.])
    """
    if isinstance(dst, Tensor):
        dst[...] = src if where is True else functions["where"](where, src, dst)
        return
    if isinstance(src, Tensor):
        src = concrete(src, "np.full, np.copyto (gt.full keeps the history)")
    np.copyto(dst, src, casting=casting, where=where)  # type: ignore[arg-type]


# ---- np.zeros(3, like=tensor) -------------------------------------------------------------------


def _for_numpy(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What answers NumPy's function of the same name, whose memory order says nothing here."""

    def made(*args: Any, order: str = "C", device: str | None = None, **options: Any) -> Tensor:
        return make(*args, **options)

    return made


for _make in (asarray, zeros, ones, empty, full, eye, identity, arange):
    registry.replacements[getattr(np, _make.__name__)] = _for_numpy(_make)
