"""The inputs of a lazy graph: placeholders, variables, constants and random draws.

Each says what value it has in an evaluation.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from gradtape.backends import is_raw
from gradtape.core.aval import Aval, aval_of, is_extended_float
from gradtape.core.finite import is_traced
from gradtape.core.nested import unshell
from gradtape.core.tensor import Tensor, as_value
from gradtape.errors import ArgumentError, ConversionError, DTypeError, ShapeError, a_type
from gradtape.graph.capture import Capture
from gradtape.ops.cast import astype

# Sizes of axes, None for one that is not known; None if not even their number is known.
Sizes = tuple[int | None, ...] | None
# The values of placeholders in one evaluation.
Feeds = Mapping["Placeholder", Any]


class Variables(Protocol):
    """What a context asks of the variables it runs with."""

    programs: Any  # a `Recent`: compiled graphs, which live as long as the variables

    def array(self, variable: Any) -> np.ndarray[Any, Any]:
        """The current value of a variable, given its id."""
        ...

    def id_of(self, name: str) -> Any:
        """The id of a variable; raises a `GradtapeError` that lists the names there are."""
        ...


class Placeholder:
    """An input that is fed.

    Attributes:
        name: Its name, for errors.
        sizes: What is known of its shape.
        dtype: The type of its elements.
    """

    def __init__(self, name: str, sizes: Sizes, dtype: np.dtype[Any]) -> None:
        self.name = name
        self.sizes = sizes
        self.dtype = dtype

    @property
    def aval(self) -> Aval | None:
        """Its shape and dtype; None if a size is not known."""
        if self.sizes is None:
            return None
        known = tuple([size for size in self.sizes if size is not None])
        return Aval(known, self.dtype) if len(known) == len(self.sizes) else None

    def value(self, feeds: Feeds) -> Any:
        """What is fed to it.

        Raises:
            ArgumentError: Nothing is.
        """
        if self not in feeds:
            raise ArgumentError(
                f"eval: got no feed for placeholder {self.name!r} ({self}), which the target "
                "depends on, expected one; use t.eval(ctx, feed={x: value}) or "
                "ctx.evaluator().push(t).feed(x, value).run()"
            )
        return feeds[self]

    def checked(self, value: Any) -> Any:
        """A value to feed, cast to its dtype.

        Raises:
            ShapeError: It has the wrong shape.
            DTypeError: It is of another kind: integers for floats.
        """
        what = f"feed: placeholder {self.name!r}"
        if not (isinstance(value, Tensor | list | tuple) or is_raw(value)):
            raise DTypeError(f"{what} got {a_type(value)}, expected an array of {self}")
        given = unshell(as_value(value))
        if isinstance(given, Tensor) and is_traced(given):
            raise ConversionError(
                f"{what} got a lazy tensor, which has no value yet; feed its value, t.eval(ctx), "
                "or use it in the graph in place of the placeholder"
            )
        weak = type(given) in (int, float, complex) and self._takes(given)
        if not isinstance(given, Tensor):
            given = np.asarray(given, self.dtype if weak else None)
        if not self._fits(given.shape):
            raise ShapeError(
                f"{what} got shape {given.shape}, expected {_shown(self.sizes)}; "
                "feed an array of that shape, or use -1 for an axis of any size"
            )
        if given.dtype == self.dtype:
            return given
        if _kind(given.dtype) != _kind(self.dtype):
            raise DTypeError(
                f"{what} got {given.dtype}, expected {self.dtype}; use "
                f"value.astype({self.dtype.name!r}), or ctx.placeholder(…, dtype=…)"
            )
        with np.errstate(all="ignore"):
            cast = astype(given, self.dtype)
        if self.dtype.kind in "iu" and not np.array_equal(cast, given):
            raise DTypeError(
                f"{what} got integers of {given.dtype} that do not fit into {self.dtype}; use "
                "ctx.placeholder(…, dtype=…)"
            )
        return cast

    def _takes(self, number: complex) -> bool:
        """Whether a Python number takes its dtype, as it would next to an array."""
        order = {int: "iufcV", float: "fcV", complex: "c"}
        return self.dtype.kind in order[type(number)]

    def _fits(self, shape: tuple[int, ...]) -> bool:
        if self.sizes is None:
            return True
        return len(shape) == len(self.sizes) and all(
            size is None or size == given for size, given in zip(self.sizes, shape, strict=True)
        )

    def __str__(self) -> str:
        return f"{self.dtype} of {_shown(self.sizes, 'shape ')}"


def _kind(dtype: np.dtype[Any]) -> str:
    return "f" if is_extended_float(dtype) else dtype.kind


def _shown(sizes: Sizes, prefix: str = "") -> str:
    if sizes is None:
        return "any shape"
    shown = tuple([-1 if size is None else size for size in sizes])
    return f"{prefix}{shown}"


class Variable:
    """An input whose value is read from the variables of the context at each evaluation."""

    def __init__(self, variables: Variables, variable: Any, name: str) -> None:
        self.variable = variable
        self.name = name
        self._variables = variables
        self.aval = aval_of(variables.array(variable))

    def value(self, feeds: Feeds) -> Any:
        """Its current value.

        Raises:
            ShapeError: It no longer has the shape and dtype that the graph was built for.
        """
        array = self._variables.array(self.variable)
        if (array.shape, array.dtype) != (self.aval.shape, self.aval.dtype):
            raise ShapeError(
                f"eval: variable {self.name!r} is {aval_of(array)} now, expected {self.aval}, as "
                "when the graph was built; build the graph again"
            )
        return array


class Constant:
    """An array, or a tensor from outside, as it was when it entered the graph."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self.aval = aval_of(value)

    def value(self, feeds: Feeds) -> Any:
        """The value."""
        return self._value


class Drawn:
    """The state of a generator for random numbers, drawn anew at each evaluation."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self.aval = aval_of(capture.value)

    def value(self, feeds: Feeds) -> Any:
        """The next state."""
        return self._capture.current()


Source = Placeholder | Variable | Constant | Drawn


def parsed_sizes(name: str, shape: Any) -> Sizes:
    """A shape given for a placeholder: None is any, -1 an axis of any size.

    Raises:
        ArgumentError: It is something else.
    """
    if shape is None:
        return None
    try:
        given = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        sizes = tuple([-1 if size is None else operator.index(size) for size in given])
    except TypeError:
        sizes = (-2,)
    if any(size < -1 for size in sizes):
        raise ArgumentError(
            f"placeholder: got shape {shape!r} for {name!r}, expected sizes, with -1 for an axis "
            "of any size, or None for any shape"
        )
    return tuple([None if size == -1 else size for size in sizes])
