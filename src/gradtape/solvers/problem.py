"""Functions given to solvers, as functions of flat operands: the solution, the arguments, closures.

A solver runs on plain arrays, so whatever a function depends on has to be an operand of the op, or
its gradient would be lost. What it uses without being given it is found by tracing the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.custom_run import is_object
from gradtape.core.aval import Abstract, Aval, aval_of, is_extended_float
from gradtape.core.state import adopted
from gradtape.errors import (
    ConversionError,
    DTypeError,
    GradtapeError,
    ShapeError,
    UnsupportedError,
    a_type,
)
from gradtape.graph.known_values import innermost_value, is_traced
from gradtape.graph.loop_state import leaf_aval, traced_function
from gradtape.graph.run import replay
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.norm import inexact
from gradtape.ops.shape import reshape
from gradtape.solvers.solver_run import CapturedError, belongs_to_a_level


class Unknowns:
    """What is solved for: where to begin, with its containers.

    Attributes:
        leaves: The leaves of the first guess, floating or complex.
        structure: Its containers.
    """

    def __init__(self, name: str, x0: Any) -> None:
        leaves, self.structure = containers.flatten(x0)
        if not leaves or any(is_object(leaf) for leaf in leaves):
            wrong = next((leaf for leaf in leaves if is_object(leaf)), x0)
            raise DTypeError(
                f"{name}: got {a_type(wrong)} in x0, expected numbers, arrays, or containers of "
                "them"
            )
        self.leaves = [_strong(adopted(_as_array(inexact(leaf))), np.float64) for leaf in leaves]
        for leaf in self.leaves:
            if is_extended_float(leaf.dtype):
                raise DTypeError(
                    f"{name}: got {leaf.dtype} in x0, expected floats that NumPy knows; use "
                    "x0.astype(np.float32)"
                )

    def container(self, leaves: Sequence[Any]) -> Any:
        """Leaves in the containers of the first guess."""
        return containers.unflatten(self.structure, list(leaves))


def _as_array(x: Any) -> Any:
    # In a trace, an array becomes an operand, and a number a constant.
    return np.asarray(x) if isinstance(x, np.generic) else x


def like_first_guess(name: str, x: Any, unknowns: Unknowns) -> list[Any]:
    """The leaves of what a solver returned, with the shapes and dtypes of the first guess."""
    leaves, structure = containers.flatten(x)
    if structure != unknowns.structure or any(map(is_object, leaves)):
        raise ShapeError(
            f"{name}: got {a_type(x)} from the solver, expected x in the containers of x0; return "
            "the solution alone, such as `result.x`"
        )
    return [_like(name, *pair) for pair in zip(leaves, unknowns.leaves, strict=True)]


def _like(name: str, leaf: Any, first: Any) -> Any:
    leaf, aval = as_array(leaf), aval_of(first)
    if leaf.shape != aval.shape:
        # SciPy makes arrays of one element of numbers.
        if {(), (1,)} != {leaf.shape, aval.shape}:
            raise ShapeError(
                f"{name}: got an array of shape {leaf.shape} from the solver, expected "
                f"{aval.shape}, the shape of x0"
            )
        leaf = reshape(leaf, aval.shape)
    if leaf.dtype.kind == "c" and aval.dtype.kind != "c":
        raise DTypeError(
            f"{name}: got {leaf.dtype} from the solver, expected real numbers as x0 is; begin with "
            "a complex x0"
        )
    return leaf if leaf.dtype == aval.dtype else astype(leaf, aval.dtype)


class Operands:
    """The arguments of a function after the first, as operands of an op.

    Python numbers, and what is no number, are no operands but stay as they are.

    Attributes:
        leaves: The operands.
    """

    def __init__(self, args: tuple[Any, ...], dtype: Any) -> None:
        """Take arguments apart.

        Args:
            args: The arguments.
            dtype: The dtype that a Python number takes, if it is only known in a trace.
        """
        self._full, self._structure = containers.flatten(args)
        self._places = [n for n, leaf in enumerate(self._full) if _is_operand(leaf)]
        self.leaves = [_strong(adopted(self._full[n]), dtype) for n in self._places]

    def arguments(self, leaves: Sequence[Any]) -> Any:
        """The arguments, made of operands."""
        full = list(self._full)
        for n, leaf in zip(self._places, leaves, strict=True):
            full[n] = leaf
        return containers.unflatten(self._structure, full)


def _is_operand(leaf: Any) -> bool:
    return not isinstance(leaf, bool | int | float | complex) and not is_object(leaf)


def _strong(leaf: Any, dtype: Any) -> Any:
    """A value with a dtype: a Python number of a compiled function takes the given one."""
    inner = innermost_value(leaf)
    if not isinstance(inner, Abstract) or not inner.weak:
        return leaf
    return astype(leaf, dtype if inner.dtype.kind == "f" else np.result_type(dtype, inner.dtype))


class Problem:
    """A function `f(x, *args)` of flat operands.

    Attributes:
        name: The name in errors.
        operands: What it depends on besides x.
    """

    def __init__(
        self, name: str, f: Callable[..., Any], unknowns: Unknowns, args: tuple[Any, ...]
    ) -> None:
        self.name = name
        self._unknowns, self._args = unknowns, Operands(args, unknowns.leaves[0].dtype)
        self._f = f
        self.operands = self._args.leaves
        # The function as it was traced; None for one that is called as it is.
        self._traced: Callable[..., Any] | None = None
        self._avals: list[Aval] | None = None
        if is_traced([*unknowns.leaves, *self.operands]):
            # A function that branches on values runs between compiled parts.
            self.trace(strict=False)

    def __call__(self, x: Any, operands: Sequence[Any]) -> Any:
        """The value of the function; x is in the containers that it was given in.

        Raises:
            CapturedError: It depends on something else that a gradient has to reach.
        """
        if self._traced is not None:
            return self._traced(like_first_guess(self.name, x, self._unknowns), operands)
        out = self._f(x, *self._args.arguments(operands))
        given = (*containers.flatten(x)[0], *operands)
        recorded = any(map(belongs_to_a_level, containers.flatten(out)[0]))
        if recorded and not any(map(belongs_to_a_level, given)):
            raise CapturedError(
                f"{self.name}: the function uses a recorded tensor that is not an argument, "
                "whose gradient would be lost; pass it as an argument, or detach() it"
            )
        return out

    def count(self) -> int:
        """How many numbers the function returns."""
        if self._avals is None:
            out = self(self._unknowns.container(self._unknowns.leaves), self.operands)
            self._avals = [aval_of(leaf) for leaf in containers.flatten(out)[0]]
        return sum(math.prod(aval.shape) for aval in self._avals)

    def arguments(self, operands: Sequence[Any]) -> Any:
        """The arguments of the function after x, made of operands."""
        return self._args.arguments(operands[: len(self._args.leaves)])

    def trace(self, *, strict: bool = True) -> None:
        """Find what the function uses besides its arguments, and make it operands.

        Raises:
            CapturedError: With `strict`, it cannot be traced.
        """
        unknowns, args, f = self._unknowns, self._args, self._f
        count = len(unknowns.leaves)

        def flat(*leaves: Any) -> Any:
            return f(unknowns.container(leaves[:count]), *args.arguments(leaves[count:]))

        avals = [leaf_aval(self.name, leaf) for leaf in (*unknowns.leaves, *args.leaves)]
        try:
            traced = traced_function(self.name, flat, avals)
        except (ConversionError, UnsupportedError) as error:
            if not strict:
                return
            raise CapturedError(
                f"{self.name}: the function uses a recorded tensor that is not an argument, and "
                f"cannot be traced to find which; pass it as an argument ({error})"
            ) from error
        self._avals = traced.avals
        captures = [_strong(capture, unknowns.leaves[0].dtype) for capture in traced.captures]
        self.operands = [*args.leaves, *captures]

        def again(leaves: Sequence[Any], operands: Sequence[Any]) -> Any:
            return containers.unflatten(
                traced.structure, replay(traced.graph, [*leaves, *operands])
            )

        self._traced = again


def with_captures(problems: Sequence[Problem], solution: Callable[[], Any]) -> Any:
    """Solve problems; again, with what their functions use from outside, if that is recorded."""
    try:
        return solution()
    except CapturedError:
        pass
    try:
        for problem in problems:
            problem.trace()
        return solution()
    except CapturedError as error:
        raise GradtapeError(str(error)) from error.__cause__
