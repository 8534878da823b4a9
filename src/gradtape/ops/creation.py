"""Making tensors: from data, or filled. They return tensors whatever they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.backends import array_module
from gradtape.core.tensor import Tensor, concrete, is_extended_float
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.ops.arguments import as_array, as_dtype, as_integer, as_shape, weak_or_array
from gradtape.ops.cast import astype, copy as copy_of
from gradtape.ops.checks import check_choice
from gradtape.ops.device import check_device, device_of
from gradtape.ops.family import member
from gradtape.ops.inspection import CASTING
from gradtape.ops.joined import joined
from gradtape.ops.select import where as where_of
from gradtape.ops.shape import broadcast_to
from gradtape.typing import ArrayLike, Shape

# ---- from data ----------------------------------------------------------------------------------


def _array(data: Any, dtype: Any, name: str, *, copy: bool | None) -> Any:
    """`data` as an array of numbers."""
    try:
        array = array_module(data).array(data, dtype=dtype, copy=copy)
    except TypeError as error:
        raise DTypeError(f"{name}: got {type(data).__name__}, dtype {dtype}; {error}") from error
    except ValueError as error:
        raise ShapeError(f"{name}: {error}") from error
    if array.dtype.kind not in "biufc" and not is_extended_float(array.dtype):
        raise DTypeError(f"{name}: got elements of dtype {array.dtype}, expected numbers")
    return array


def tensor(data: ArrayLike, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Make a tensor that holds a copy of the data.

    Args:
        data: Numbers, an array, a tensor without history, or nested sequences of numbers, and of
            tensors, whose history it keeps.
        dtype: Its dtype; as NumPy chooses if not given, so Python floats give float64.
        requires_grad: Whether gradients are to be taken for it.

    Raises:
        ConversionError: The data is a tensor that is being recorded, whose history a copy of the
            value would lose.
        DTypeError: The data are not numbers; or a gradient is required of integers.
        ShapeError: The data is ragged.

    >>> gt.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    if isinstance(data, Tensor):
        advice = "tensor (gt.asarray passes a tensor on, gt.copy copies it with its history)"
        data = concrete(data, advice)
    whole = joined(data)
    made: Tensor
    if not isinstance(whole, Tensor):
        made = Tensor(_array(data, dtype, "tensor", copy=True))
    else:
        made = whole if dtype is None else astype(whole, as_dtype(dtype, "tensor"))
    return made.set_requires_grad() if requires_grad else made


def array(data: ArrayLike, /, dtype: Any = None) -> Tensor:
    """Make a tensor of a copy of the data, with the history of tensors in it.

    Args:
        data: A tensor, an array, numbers, or nested sequences of numbers and tensors.
        dtype: Its dtype; that of the data if not given.

    Raises:
        DTypeError: The data are not numbers.
        ShapeError: The data is ragged.

    >>> def rotation(angle):
    ...     c, s = gt.cos(angle), gt.sin(angle)
    ...     return gt.array([[c, -s], [s, c]])
    >>> gt.jacobian(rotation)(0.0)
    array([[-0., -1.],
           [ 1., -0.]])
    """
    return asarray(data, dtype, copy=True)


def asarray(
    data: ArrayLike, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None
) -> Tensor:
    """Return the data as a tensor, without copying if possible; a tensor keeps its history.

    Args:
        data: A tensor, an array, numbers or nested sequences of numbers; tensors in a sequence are
            stacked.
        dtype: Its dtype; that of the data if not given.
        device: None or where the data is: gradtape does not move arrays.
        copy: True copies always, False raises where a copy is needed.

    Raises:
        ArgumentError: A copy is needed that `copy=False` forbids; or the data is on another device.
        DTypeError: The data are not numbers.

    >>> x = gt.ones(2, requires_grad=True)
    >>> gt.asarray(x) is x
    True
    """
    check_device(device, "asarray", device_of(data))
    data = joined(data)
    if not isinstance(data, Tensor):
        return Tensor(_array(data, dtype, "asarray", copy=copy))
    if dtype is not None and data.dtype != (kind := as_dtype(dtype, "asarray")):
        if copy is False:
            raise ArgumentError(f"asarray: {data.dtype} to {kind} needs a copy")
        return astype(data, dtype)  # type: ignore[no-any-return]
    return copy_of(data) if copy else data


# ---- filled -------------------------------------------------------------------------------------


def _filled(
    name: str, shape: Shape, dtype: Any = None, *, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Make a tensor {what}.

    Args:
        shape: The size or sizes.
        dtype: Its dtype; float64 if not given.
        device: None or "cpu", where arrays are made.
        requires_grad: Whether gradients are to be taken for it.

    Raises:
        ArgumentError: There is no such device.
        DTypeError: There is no such dtype; or a gradient is required of integers.
        ShapeError: The sizes are not integers from 0.

    zeros:
    >>> gt.zeros((2, 2), dtype=gt.float32)
    tensor([[0., 0.],
            [0., 0.]], dtype=float32)

    ones:
    >>> gt.ones(3, requires_grad=True)
    tensor([1., 1., 1.], requires_grad=True)

    empty:
    >>> gt.empty((2, 3)).shape
    (2, 3)
    """
    check_device(device, name)
    array = getattr(np, name)(as_shape(shape, name), as_dtype(dtype, name))
    return Tensor(array).set_requires_grad(requires_grad)


zeros = member("zeros", _filled, what="of zeros")
ones = member("ones", _filled, what="of ones")
empty = member("empty", _filled, what="without setting its elements")


def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: Any = None,
    *,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a tensor filled with a value; differentiable in the value.

    Args:
        shape: The size or sizes.
        fill_value: A number, or an array or tensor that broadcasts to the shape.
        dtype: Its dtype; that of the value if not given.
        device: None or "cpu", where arrays are made.
        requires_grad: Whether gradients are to be taken for it.

    Raises:
        ShapeError: The value does not broadcast to the shape.

    >>> gt.full(3, 2.0)
    tensor([2., 2., 2.])
    """
    check_device(device, "full")
    kind = None if dtype is None else as_dtype(dtype, "full")
    filled = broadcast_to(asarray(fill_value, kind), as_shape(shape, "full"))
    made: Tensor = copy_of(filled)  # memory of its own, not a broadcast view of one number
    return made.set_requires_grad() if requires_grad else made


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    *,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Make a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: The number of rows.
        M: The number of columns; as many as rows if not given.
        k: Which diagonal; positive ones lie above the main diagonal.
        dtype: Its dtype; float64 if not given.
        device: None or "cpu", where arrays are made.
        requires_grad: Whether gradients are to be taken for it.

    Raises:
        ShapeError: A number of rows or columns is negative.

    >>> gt.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_device(device, "eye")
    rows, columns = as_shape((N, N if M is None else M), "eye")
    made = np.eye(rows, columns, as_integer(k, "eye", "k"), as_dtype(dtype, "eye"))
    return Tensor(made).set_requires_grad(requires_grad)


def identity(
    n: int, dtype: Any = None, *, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Make the identity matrix with `n` rows; options as of `zeros`.

    >>> gt.identity(2, gt.int64)
    tensor([[1, 0],
            [0, 1]])
    """
    return eye(n, dtype=dtype, device=device, requires_grad=requires_grad)


def copyto(dst: Any, src: ArrayLike, casting: str = "same_kind", where: Any = True) -> None:
    """Write `src` into `dst`, as NumPy does; an array cannot hold the history of a tensor.

    `np.full(3, x)` and `array.fill(x)` are of this kind; `gt.full` is differentiable.

    Args:
        dst: What to write into.
        src: What to write; it broadcasts.
        casting: Which changes of dtype are allowed, by NumPy's names.
        where: Where to write, as truth values that broadcast.

    Raises:
        ConversionError: `dst` is an array and `src` a tensor that is being recorded.
        DTypeError: `casting` does not allow the change of dtype.
        ArgumentError: There is no such `casting`.

    >>> x = gt.zeros(2)
    >>> np.copyto(x, 3.0)
    >>> x
    tensor([3., 3.])
    """
    if isinstance(dst, Tensor):
        src = _castable(src, dst.dtype, casting)
        dst[...] = src if where is True else where_of(where, src, dst)
        return
    if isinstance(src, Tensor):
        src = concrete(src, "np.full, np.copyto (gt.full keeps the history)")
    np.copyto(dst, src, casting=casting, where=where)  # type: ignore[arg-type]


def _castable(src: Any, dtype: Any, casting: Any) -> Any:
    """The source of `copyto`, cast if casting is unsafe, else checked; Python numbers stay."""
    check_choice("copyto", CASTING, casting=casting)
    if casting == "unsafe":
        return astype(as_array(src), dtype, copy=False)
    src = weak_or_array(src)
    if hasattr(src, "dtype") and not np.can_cast(src.dtype, dtype, casting):
        raise DTypeError(
            f"copyto: got {src.dtype} for {dtype} with casting={casting!r}, expected a dtype that "
            "can be cast so; use astype"
        )
    return src
