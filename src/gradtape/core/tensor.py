"""The tensor: a value with a record.

The exact class `Tensor` holds a raw array and a reverse-mode record (or none): that is what the
fast paths test for; `core.nested` has the other kinds. All of them are handles: item assignment,
`+=` and optimizer steps give the handle a new value, and never write into an array that a record
may hold.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gradtape.backends import array_module, as_index, is_raw, make_array, to_numpy
from gradtape.core.aval import Abstract, is_extended_float as is_extended_float
from gradtape.core.hooks import HOOKS
from gradtape.core.level import CONTEXT_LEVEL, LEAVES, Leaf, Node, Segment
from gradtape.core.needed_ops import needed
from gradtape.core.sparse_operators import as_object, leaves_operator
from gradtape.core.state import current
from gradtape.errors import (
    ArgumentError,
    ConversionError,
    DTypeError,
    GradtapeError,
    ShapeError,
    WriteError,
    a_type,
)


class Tensor:
    """An n-dimensional array that records what is done with it; made by `gt.tensor`.

    It has NumPy's operators, indexing and methods, and NumPy's own functions work on it.

    Attributes:
        value: Its content: an array, or a tensor of an outer level. Treat as read-only.
        record: Where it comes from, or None if nothing is recorded.

    >>> x = gt.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).backward()
    >>> x.grad
    tensor([2., 4.])
    """

    # `_off` is the leaf this was before set_requires_grad(False): earlier records refer to it.
    # `_place` is set for a 0-d tensor that is a place and no number (`note_places`).
    __slots__ = ("__weakref__", "_off", "_place", "record", "value")

    # Subclasses say how a tensor is kept, which is not what an error is about.
    _name_in_messages: ClassVar[str] = "Tensor"
    _off: Leaf | None
    _place: bool
    # Whether it stands for elements of another tensor.
    _is_view: ClassVar[bool] = False

    def __init__(self, value: Any, record: Node | None = None) -> None:
        self.value = value
        self.record = record

    # ---- what it is ------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        try:
            return self.value.shape  # type: ignore[no-any-return]
        except AttributeError:
            raise _not_an_array(self.value) from None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        try:
            return self.value.dtype  # type: ignore[no-any-return]
        except AttributeError:
            raise _not_an_array(self.value) from None

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def requires_grad(self) -> bool:
        """Whether ops on it are recorded: a leaf set so, or the result of a recorded op."""
        return self.record is not None

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        self.set_requires_grad(requires_grad)

    @property
    def is_leaf(self) -> bool:
        """Whether it is not the result of a recorded op."""
        return self.record is None or isinstance(self.record, Leaf)

    # ---- gradients -------------------------------------------------------------------------

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf; None before the first backward pass."""
        leaf = self._leaf()
        return None if leaf is None else leaf.grad

    @grad.setter
    def grad(self, gradient: Tensor | None) -> None:
        leaf = self._leaf()
        if leaf is None:
            raise WriteError(
                "grad: got a tensor that is not a leaf, or requires no gradient, expected a leaf "
                "that does; use t.detach().set_requires_grad()"
            )
        if gradient is not None and not isinstance(gradient, Tensor):
            gradient = Tensor(np.asarray(gradient))
        if gradient is not None and (gradient.shape, gradient.dtype) != (self.shape, self.dtype):
            raise ShapeError(
                f"grad: got {gradient.dtype}{list(gradient.shape)}, expected "
                f"{self.dtype}{list(self.shape)}, the dtype and shape of the tensor"
            )
        leaf.grad = gradient

    def _leaf(self) -> Leaf | None:
        """The leaf that has its gradient, even while switched off; None for the result of an op."""
        node = self.record or getattr(self, "_off", None)
        return node if isinstance(node, Leaf) else None

    def set_requires_grad(self, requires_grad: bool = True) -> Tensor:
        """Make this tensor a leaf to compute gradients for (or stop that); returns itself.

        A leaf that is switched off keeps its `grad`, and backward passes do not add to it until it
        is switched on again; then those through earlier records do so too.

        >>> gt.ones(2).set_requires_grad(True).requires_grad
        True
        """
        leaf = self._leaf()
        if not requires_grad:
            if not self.is_leaf:
                raise WriteError(
                    "set_requires_grad: got False for the result of a recorded op, expected a "
                    "leaf; use detach()"
                )
            self._off, self.record = leaf, None
        elif self.record is None:
            if self.dtype.kind not in "fc" and not is_extended_float(self.dtype):
                raise DTypeError(
                    f"set_requires_grad: got {self.dtype}, expected a floating or complex dtype; "
                    "use astype(gt.float64)"
                )
            self.record = leaf = Leaf(LEAVES, self.value) if leaf is None else leaf
        if leaf is not None:
            leaf.off = not requires_grad
        return self

    def zero_grad(self) -> None:
        """Set the gradient to zeros (a gradient that was never computed stays None)."""
        leaf = self._leaf()
        if leaf is not None:
            leaf.zero(functools.partial(_zeros, array_module(self.value), self.shape, self.dtype))

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool = True,
        create_graph: bool = False,
        *,
        release: bool = False,
    ) -> None:
        """Add the gradients of this tensor to `.grad` of the leaves; see `compute_gradients`.

        Args:
            gradient: The cotangent to start from; ones if not given.
            retain_graph: Whether it can be walked again; False is `release`.
            create_graph: Whether the backward pass is itself recorded.
            release: Whether to free the records on the way.
        """
        release = release or not retain_graph
        needed.compute_gradients(self, gradient, create_graph=create_graph, release=release)

    def register_hook(self, hook: Callable[[Tensor], Any]) -> Any:
        """Call a function with the gradient of this tensor in every backward pass.

        It is called as soon as the gradient is complete, before anything is computed from it. Hooks
        of one tensor are called in the order in which they were registered; forward mode calls
        none.

        Args:
            hook: `hook(gradient)` returns None, or what to use in place of the gradient: an array
                or a tensor of its shape, or a Python number for a 0-d gradient. Writing to the
                gradient has no effect unless it is returned; if None is, that is a `WriteError` of
                the backward pass.

        Returns:
            A handle; `handle.remove()` takes the hook away again.

        Raises:
            TapeError: The tensor is not recorded.
            UnsupportedError: It is recorded in forward mode, mapped or traced: by `gt.jvp`,
                `gt.vmap`, `gt.jit` and functions that are built on them.

        >>> x = gt.ones(2, requires_grad=True)
        >>> y = x * 3.0
        >>> handle = y.register_hook(lambda gradient: print("gradient of y:", gradient))
        >>> gt.sum(y * y).backward()
        gradient of y: tensor([6., 6.])
        """
        return needed.add_hook(self, hook, after=False)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], Any]) -> Any:
        """Call a function with this leaf in every backward pass, once its `.grad` is complete.

        The backward pass goes on afterwards: an optimizer can step and set `.grad` to None while
        other gradients are still to come, so that they never take memory all at once.

        Args:
            hook: `hook(leaf)`; what it returns is ignored.

        Returns:
            A handle; `handle.remove()` takes the hook away again.

        Raises:
            ArgumentError: The tensor is not a leaf of gradient contexts, which has a `.grad`.

        >>> w = gt.ones(2, requires_grad=True)
        >>> handle = w.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> gt.sum(w * w).backward()
        tensor([2., 2.])
        """
        return needed.add_hook(self, hook, after=True)

    def detach(self) -> Tensor:
        """The same value without history, at every level.

        >>> x = gt.ones(2, requires_grad=True)
        >>> (x * 2).detach().requires_grad
        False
        """
        return needed.stop_gradient(self)  # type: ignore[no-any-return]

    # ---- reading the value -----------------------------------------------------------------

    def item(self) -> Any:
        """The single element as a Python number, even while being recorded."""
        value = innermost(self, "item()")
        if value.size != 1:
            raise ShapeError(f"item: got shape {self.shape}, expected exactly one element")
        _note_made_plain(self, "item()")
        return value.item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers, even while being recorded."""
        value = innermost(self, "tolist()")
        _note_made_plain(self, "tolist()")
        return value.tolist()

    def numpy(self) -> Any:
        """The value as a read-only NumPy array; raises while it is being recorded."""
        return read_only(to_numpy(concrete(self, "numpy()")))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if dtype is None and leaves_operator(sys._getframe(1)):
            return as_object(self)
        as_it_is = dtype is None or np.dtype(dtype) is OBJECTS
        if as_it_is and followed(self) and self.ndim == 0:
            return needed.as_object(self)  # see `core.tracked_number`
        array = to_numpy(concrete(self, "np.asarray(tensor)"))
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ArgumentError(
                    f"np.asarray: got copy=False to convert {array.dtype} to {dtype}, which "
                    "copies; leave it out"
                )
            return array.astype(dtype)
        return array.copy() if copy else read_only(array)

    def __float__(self) -> float:
        return float(concrete(self, "float(tensor)"))

    def __int__(self) -> int:
        return int(concrete(self, "int(tensor)"))

    def __complex__(self) -> complex:
        return complex(concrete(self, "complex(tensor)"))

    def __index__(self) -> int:
        value = concrete(self, "operator.index(tensor)")
        try:
            return as_index(value)
        except DTypeError as error:
            HOOKS.operand_refused(error, "operator.index(tensor)")
            raise

    def __bool__(self) -> bool:
        value = innermost(self, "bool(tensor)")
        if value.size != 1:
            raise ShapeError(
                f"bool(tensor): got shape {value.shape}, whose truth is ambiguous, expected one "
                "element; use gt.any(t) or gt.all(t), or gt.where to choose element by element"
            )
        return bool(value)

    def __format__(self, spec: str) -> str:
        if spec and self.ndim == 0:
            return format(innermost(self, "format(tensor)").item(), spec)
        return format(repr(self), spec)

    def __repr__(self) -> str:
        now = self.peek()
        value, record, notes = innermost(now, show=True), now.record, []
        if isinstance(value, Abstract):
            body = str(value)
        else:
            body = np.array2string(
                to_numpy(value), separator=", ", prefix="tensor(", floatmode="maxprec"
            )
            if now.dtype not in (np.float64, np.int64, np.bool_):
                notes.append(f"dtype={now.dtype}")
        if record is not None:
            leaf = record.segment is LEAVES
            notes.append("requires_grad=True" if leaf else f"recorded by {record.segment.label}")
        return f"tensor({', '.join([body, *notes])})"

    def __len__(self) -> int:
        if not self.shape:
            raise DTypeError("len: got a 0-d tensor, expected at least one axis")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    __hash__ = object.__hash__

    def __copy__(self) -> Tensor:
        return needed.copy(self)  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self.record is not None and self.record.segment is not LEAVES:
            raise ConversionError("deepcopy: got a tensor that is being recorded; use copy()")
        return Tensor(np.array(concrete(self.detach(), "deepcopy"))).set_requires_grad(
            self.requires_grad
        )

    def __reduce__(self) -> Any:
        raise ConversionError(
            "pickle: got a tensor, expected an array; save np.asarray(t.detach()) with np.save, "
            "or a module's state_dict() with gt.save"
        )

    # ---- writing ---------------------------------------------------------------------------

    def fresh(self) -> Tensor:
        """This tensor, up to date; a view checks whether its base has changed."""
        return self

    def peek(self) -> Tensor:
        """This tensor, up to date, for reading its value even when its history has ended."""
        return self

    def rebind(self, other: Tensor) -> None:
        """Give this handle the value and history of `other`."""
        other = other.fresh()
        leaf = self.record if isinstance(self.record, Leaf) else None
        self.__class__ = type(other)
        self.value = other.value
        # A leaf that is given a new value under no_grad stays a leaf.
        self.record = leaf if other.record is None else other.record
        if other.record is not None:
            self._off = None
            # What was written to is a place. A size may be unknown in a lazy graph, where all are.
            if not (other.record.segment.lazy or other.shape):
                self._place = True

    def __getitem__(self, index: Any) -> Tensor:
        return needed.getitem(self, index)  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.check_writable("item assignment")
        if type(self) is Tensor and needed.assign_in_place(self, value, index):
            return
        self.rebind(needed.setitem(self, value, index))

    def check_writable(self, what: str) -> None:
        """Refuse a write that would lose history."""
        record, state = self.record, current()
        if record is None or not isinstance(record.segment, Segment):
            return
        if record.segment is LEAVES:
            if not state.stops(record.segment.number):
                raise WriteError(
                    f"{what}: got a leaf that requires a gradient; its old value would be lost "
                    "to the tape. Write to a copy (x * 1), or inside gt.no_grad()"
                )
        elif state.stops(record.segment.number):
            raise WriteError(
                f"{what}: got a recorded result inside no_grad, which would cut it from its "
                "history; write outside of no_grad, or to its detach()"
            )

    def augment(self, function: Callable[[Any, Any], Any], other: Any) -> Tensor:
        """`self = function(self, other)`: keeps shape and dtype, as NumPy does.

        Results without axes are numbers in NumPy, of which `+=` makes new ones. So it is here while
        a transform, a trace or a tape follows them, unless they are places (`note_places`).
        """
        name = function.__name__
        self.check_writable("augmented assignment")
        result = function(self, other)
        if not (is_place(self) or self.shape):  # a place may be of unknown size
            return result  # type: ignore[no-any-return]
        if result.shape != self.shape:
            raise ShapeError(
                f"{name}: got a result of shape {result.shape} in an augmented assignment to shape "
                f"{self.shape}, expected the same shape; assign the result to a name"
            )
        if result.dtype != self.dtype:
            if not np.can_cast(result.dtype, self.dtype, "same_kind"):
                raise DTypeError(
                    f"{name}: got a result of {result.dtype} in an augmented assignment to "
                    f"{self.dtype}, expected a dtype that can be cast to it; assign the result to "
                    "a name"
                )
            result = needed.astype(result, self.dtype)
        self.rebind(result)
        return self

    if TYPE_CHECKING:
        # Operators, NumPy protocols and array methods are installed by `ops` (see `ops.methods`).
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __getattr__(self, name: str) -> Callable[..., Any]: ...


def _not_an_array(value: Any) -> DTypeError:
    """The error for a tensor made directly, `Tensor(x)`, from an `x` that is not an array."""
    return DTypeError(
        f"Tensor: got {a_type(value)}, expected an array; make tensors with gt.tensor([1.0, 2.0])"
    )


def innermost(tensor: Tensor, what: str = "the value", *, show: bool = False) -> Any:
    """The raw array below all levels; `what` names it in errors, `show` also allows a batch."""
    value: Any = tensor
    while isinstance(value, Tensor):
        value = value.peek()
        if value.record is not None and not show:
            value.record.segment.read(value, what)
        value = value.value
    return value


def _note_made_plain(tensor: Tensor, method: str) -> None:
    """Tell the level of a tensor that its value was read as plain numbers, by which method."""
    record = tensor.peek().record
    if record is not None:
        record.segment.made_plain = method


def concrete(tensor: Tensor, what: str) -> Any:
    """The raw array of a tensor that is not being recorded; raises where history would be lost."""
    value: Any = tensor
    state = current()
    while isinstance(value, Tensor):
        value = value.peek()
        if value.record is not None:
            segment, recorded = value.record.segment, False
            try:
                segment.read(value, what)
                # no_grad stops recording, not tangents.
                recorded = segment.active and not (
                    isinstance(segment, Segment) and state.stops(segment.number)
                )
                if recorded:
                    raise ConversionError(
                        f"{what}: this tensor is recorded by {segment.label}, and its history "
                        "would be lost"
                    )
            except ConversionError as error:
                HOOKS.conversion_refused(error, recorded)
                raise
        value = value.value
    return value


def followed(tensor: Tensor) -> bool:
    """Whether a transform, a trace or a tape follows a real tensor, and not just a context."""
    return is_followed(tensor) and tensor.dtype.kind == "f"


def is_followed(tensor: Tensor) -> bool:
    """Whether a transform, a trace or a tape follows a tensor, and not just a context."""
    value: Any = tensor
    state = current()
    while isinstance(value, Tensor):
        value = value.peek()
        segment = None if value.record is None else value.record.segment
        if segment is not None and segment.number > CONTEXT_LEVEL and segment.active:
            stopped = isinstance(segment, Segment) and state.stops(segment.number)
            if not (segment.lazy or stopped):
                return True
        value = value.value
    return False


def note_places(args: Sequence[Any], given: Sequence[Any]) -> None:
    """Note which arguments of a function are places, as 0-d arrays are, and which are numbers.

    Args:
        args: What the function gets: tensors that a transform follows.
        given: What they were made of.
    """
    for arg, made_of in zip(args, given, strict=True):
        if getattr(made_of, "shape", None) == () and not isinstance(made_of, np.generic):
            place = not isinstance(made_of, Tensor) or is_place(made_of)
            if place and isinstance(arg, Tensor) and arg is not made_of and not arg.shape:
                arg._place = True


def is_place(tensor: Tensor) -> bool:
    """Whether a 0-d tensor is a place, in which `+=` writes, and not a number, as results are."""
    return tensor._is_view or hasattr(tensor, "_place") or not is_followed(tensor)


def _zeros(xp: Any, shape: tuple[int, ...], dtype: Any) -> Tensor:
    return Tensor(xp.zeros(shape, dtype))


def read_only(array: Any) -> Any:
    """A view of `array` that refuses writes: records may hold the array."""
    view = array.view()
    view.flags.writeable = False
    return view


OBJECTS = np.dtype(object)


def as_value(value: Any, dtype: Any = None) -> Any:
    """An operand as ops take it: tensors, arrays and numbers as they are, lists as arrays.

    Lists and arrays of objects that hold tensors become one tensor.
    """
    if isinstance(value, Tensor):
        return value
    try:
        if is_raw(value) and dtype is None:
            if type(value) is np.ndarray and value.dtype is OBJECTS:
                return needed.joined(value)
            # Subclasses with their own arithmetic would follow different rules.
            if isinstance(value, np.ma.MaskedArray):
                raise DTypeError(
                    "got a masked array, which has no derivatives, expected a plain one; use "
                    "np.where with filled values"
                )
            return np.asarray(value) if isinstance(value, np.matrix) else value
        whole = needed.joined(value)
        if isinstance(whole, Tensor):
            return whole if dtype is None else needed.astype(whole, dtype)
        return make_array(value, dtype)
    except GradtapeError as error:
        HOOKS.operand_refused(error, None)
        raise
