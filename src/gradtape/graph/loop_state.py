"""Functions given to loops and branches as graphs, and checks of what they take and return.

The state of a loop keeps its containers, shapes and dtypes from step to step, in eager code as in
compiled code; only a Python number may take the dtype that the first step gives it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape import containers
from gradtape.core.aval import Abstract, Aval, aval_of, is_numeric
from gradtape.core.nested import unshell
from gradtape.core.state import adopted, current, values_read
from gradtape.core.tensor import Tensor
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    ShapeError,
    UnsupportedError,
    a_type,
)
from gradtape.graph.capture import DrawCapture
from gradtape.graph.ir import Graph
from gradtape.graph.trace import trace
from gradtape.graph.while_op import Save
from gradtape.ops.cast import astype


class Traced(NamedTuple):
    """A function given to a loop or branch, as a graph.

    Attributes:
        graph: Its inputs are the leaves of the arguments, then the captures.
        captures: What the function uses besides its arguments.
        structure: The containers of its results, or of the first of two.
        second: The containers of the second, if it returns two.
    """

    graph: Graph
    captures: tuple[Any, ...]
    structure: containers.Structure
    second: containers.Structure = None

    @property
    def avals(self) -> list[Aval]:
        """The shapes and dtypes of the results."""
        return [output.aval for output in self.graph.outputs]


def traced_function(
    name: str, function: Callable[..., Any], avals: Sequence[Aval], parts: int = 1
) -> Traced:
    """Trace a function given to a loop or branch; with `parts=2` it returns a pair."""
    structures: list[containers.Structure] = []

    def flat(*args: Any) -> Any:
        out = function(*args)
        leaves = []
        structures.clear()
        for part in out if parts == 2 else (out,):
            own, structure = containers.flatten(part, view=containers.ALL_ARRAYS)
            structures.append(structure)
            for leaf in own:
                leaf_aval(name, leaf)
            leaves += own
        return tuple(leaves)

    made = trace(flat, avals, name, rewriting=current().rewriting)
    for capture in made.captures:
        if isinstance(capture, DrawCapture):
            raise UnsupportedError(
                f"{name}: the function draws random numbers, which would be the same at every "
                "step of a compiled loop; draw them outside, and go through them"
            )
    for guard in made.guards:
        values_read(guard.array)
    captures = tuple([adopted(capture.current()) for capture in made.captures])
    return Traced(made.graph, captures, *structures)


class State:
    """The state of a traced loop: the containers, shapes and dtypes that every step has to keep.

    Attributes:
        values: The first state, flattened.
        avals: Its shapes and dtypes; Python numbers get those that the body gives them.
    """

    def __init__(self, name: str, leaves: Sequence[Any], structure: containers.Structure) -> None:
        self._name = name
        self._structure = structure
        self.values = list(leaves)
        self.avals = [leaf_aval(name, leaf) for leaf in leaves]

    def settled(self, trace_body: Callable[[list[Aval]], Traced]) -> Traced:
        """The body, traced with the dtypes that Python numbers end up with."""
        while True:
            body = trace_body(self.avals)
            check_structure(self._name, body.structure, self._structure)
            changed = False
            for n, (old, new) in enumerate(zip(self.avals, body.avals, strict=False)):
                if old != new:
                    changed |= self._adapt(n, old, new)
            if not changed:
                return body

    def _adapt(self, n: int, old: Aval, new: Aval) -> bool:
        """Let a Python number take the dtype of the body; returns whether it has changed."""
        if old.weak and old.shape == new.shape and np.can_cast(old.dtype, new.dtype, "same_kind"):
            value = self.values[n]
            self.avals[n] = Aval((), np.dtype(new.dtype), weak=new.weak)
            if not isinstance(value, Tensor):
                kind = float if new.weak else new.dtype.type
                self.values[n] = kind(value)
            else:
                self.values[n] = astype(value, new.dtype)
            return True
        if new.weak and new.dtype == old.dtype and new.shape == old.shape:
            return False
        raise _changed(self._name, old, new)


class Watch:
    """Checks that the state of a loop in Python keeps its structure, shapes and dtypes.

    Attributes:
        first: The first state, which the loop may write to: the caller's stays as it is.
        leaves: The leaves of the state.
    """

    def __init__(self, name: str, state: Any) -> None:
        self._name = name
        leaves, self._structure = containers.flatten(state, view=containers.ALL_ARRAYS)
        self._avals = [leaf_aval(name, leaf) for leaf in leaves]
        self.leaves = [owned(leaf) for leaf in leaves]
        self.first = containers.unflatten(self._structure, self.leaves)

    def checked(self, state: Any) -> Any:
        """The next state."""
        leaves, structure = containers.flatten(state, view=containers.ALL_ARRAYS)
        check_structure(self._name, structure, self._structure)
        for n, leaf in enumerate(leaves):
            self._avals[n] = same_aval(self._name, self._avals[n], leaf_aval(self._name, leaf))
        self.leaves = leaves
        return containers.unflatten(structure, leaves)

    def kept(self, leaf: Any) -> Any:
        """A result as it is now: it may be part of the state, which the next step may write to."""
        if isinstance(leaf, np.ndarray) and leaf.base is None:
            shared = any(leaf is own for own in self.leaves)
            return leaf.copy() if shared else leaf
        return owned(leaf)


def owned(leaf: Any) -> Any:
    """A value that can be written to without changing the one given; a tensor is a handle of it."""
    if isinstance(leaf, Tensor):
        now = leaf.fresh()
        return type(now)(now.value, now.record)
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


class Same:
    """Checks that the results of all steps of a loop in Python have the same containers."""

    def __init__(self, name: str, what: str) -> None:
        self._name, self._what = name, what
        self.structure: containers.Structure = None
        self.avals: list[Aval] = []

    def leaves(self, out: Any) -> list[Any]:
        """The leaves of the results of a step."""
        leaves, structure = containers.flatten(out, view=containers.ALL_ARRAYS)
        avals = [leaf_aval(self._name, leaf) for leaf in leaves]
        if self.structure is None:
            self.structure, self.avals = structure, avals
        check_structure(self._name, structure, self.structure, self._what)
        for n, (old, new) in enumerate(zip(self.avals, avals, strict=True)):
            self.avals[n] = same_aval(self._name, old, new, self._what)
        return leaves


def same_aval(name: str, old: Aval, new: Aval, what: str = "state") -> Aval:
    """The shape and dtype of a value from step to step; a Python number may take a dtype once.

    Raises:
        ShapeError: The shape has changed.
        DTypeError: The dtype has changed.
    """
    for number, other in ((old, new), (new, old)):
        fits = number.shape == other.shape and np.can_cast(number.dtype, other.dtype, "same_kind")
        if number.weak and fits:
            return other
    if (old.shape, old.dtype) != (new.shape, new.dtype):
        raise _changed(name, old, new, what)
    return old


def check_structure(name: str, new: Any, old: Any, what: str = "state") -> None:
    if new != old:
        raise ShapeError(
            f"{name}: the {what} becomes {new}, expected {old}, the containers it began with"
        )


def _changed(name: str, old: Aval, new: Aval, what: str = "state") -> ShapeError | DTypeError:
    kind = ShapeError if old.shape != new.shape else DTypeError
    todo = "" if kind is ShapeError else "; begin with that dtype, or use astype in the body"
    verb = "become" if what.endswith("s") else "becomes"
    return kind(f"{name}: the {what} {verb} {new}, expected {old}, as at first{todo}")


def leaf_aval(name: str, leaf: Any) -> Aval:
    if (
        not isinstance(leaf, Tensor)
        and not hasattr(leaf, "dtype")
        and not isinstance(leaf, bool | int | float | complex)
    ):
        raise DTypeError(
            f"{name}: got {a_type(leaf)}, expected arrays, numbers, or containers of them"
        )
    aval = aval_of(unshell(leaf).value) if _symbolic(leaf) else aval_of(leaf)
    if not is_numeric(aval.dtype):
        raise DTypeError(f"{name}: got {aval}, expected arrays of numbers")
    return Aval(aval_of(leaf).shape, np.dtype(aval.dtype), weak=aval.weak)


def _symbolic(leaf: Any) -> bool:
    """Whether a leaf is a traced tensor with no other level around it: it may be a weak number."""
    value = unshell(leaf) if isinstance(leaf, Tensor) else leaf
    return isinstance(value, Tensor) and isinstance(value.value, Abstract)


def check_number(name: str, what: str, value: Any) -> None:
    if isinstance(value, Tensor) or hasattr(value, "shape"):
        if value.shape != ():
            raise ShapeError(f"{name}: got shape {value.shape} for {what}, expected one number")
    elif not isinstance(value, bool | int | float):
        raise DTypeError(f"{name}: got {a_type(value)} for {what}, expected one number")


def checked_save(name: str, save: Any) -> Save:
    if save in ("all", "sqrt"):
        return save  # type: ignore[no-any-return]
    try:
        count = operator.index(save)
    except TypeError:
        count = 0
    if count < 1 or isinstance(save, bool):
        raise ArgumentError(
            f"{name}: got save={save!r}, expected 'all', 'sqrt', or the number of states to keep"
        )
    return count


def pair(name: str, out: Any) -> tuple[Any, Any]:
    if not isinstance(out, tuple) or len(out) != 2:
        raise ShapeError(
            f"{name}: the function returned {a_type(out)}, expected a pair (state, result)"
        )
    return out


def steps_of(name: str, xs: Any, length: Any) -> int:
    """The number of steps, from the arrays or as given."""
    leaves, _ = containers.flatten(xs, view=containers.ALL_ARRAYS)
    sizes = {}
    for n, leaf in enumerate(leaves):
        aval = leaf_aval(name, leaf)
        if not aval.shape:
            place = containers.Place("xs", xs, n, view=containers.ALL_ARRAYS)
            raise ShapeError(
                f"{name}: {place} is {aval}, expected an array with a first axis; "
                "use np.array of a list of numbers"
            )
        sizes[n] = aval.shape[0]
    if length is not None:
        try:
            given = operator.index(length)
        except TypeError:
            raise DTypeError(
                f"{name}: got length={length!r}, expected an integer; in a compiled function use "
                "static_argnums for it, or gt.fori_loop, whose bounds may be values"
            ) from None
        if given < 0:
            raise ArgumentError(f"{name}: got length={given}, expected a number of steps")
        if any(size != given for size in sizes.values()):
            raise ShapeError(
                f"{name}: got length={given}, expected {next(iter(sizes.values()))}, the length of "
                "the arrays"
            )
        return given
    if not sizes:
        raise ArgumentError(f"{name}: got no arrays and no length, expected one of them")
    if len(set(sizes.values())) > 1:
        places = [containers.Place("xs", xs, n, view=containers.ALL_ARRAYS) for n in sizes]
        pairs = zip(places, sizes.values(), strict=True)
        found = ", ".join(f"{place}: {size}" for place, size in pairs)
        raise ShapeError(f"{name}: got arrays of different lengths, {found}, expected one length")
    return int(sizes[0])
