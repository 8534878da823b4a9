"""What SciPy found, as differentiable tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.tensor import Tensor
from gradtape.errors import ConvergenceError
from gradtape.graph.known_values import is_unknown
from gradtape.ops.cast import astype
from gradtape.solvers.implicit import ImplicitFunction
from gradtape.solvers.linear import linear_solver
from gradtape.solvers.require import Failure, require

FLOAT, INTEGER = np.dtype(np.float64), np.dtype(np.int64)
_NO_SOLUTION = (
    "{}: got no solution from SciPy ({}), expected one to differentiate; begin elsewhere, allow "
    "more steps, or detach() the arguments"
)


@dataclasses.dataclass
class Found:
    """What a function of SciPy returned.

    Attributes:
        x: What was solved for, as arrays.
        constants: What else the equations depend on, such as which bounds are active.
        result: What SciPy returned.
        failure: Why there is no derivative; None if there is one.
        success: Whether SciPy says that it is a solution; by default, whether there is no failure.
    """

    x: Sequence[Any]
    constants: Sequence[Any]
    result: Any
    failure: str | None
    success: bool | None = None


class Solution:
    """The solution of equations that SciPy solves on plain arrays.

    Args:
        name: The name in errors.
        run: `run(*inputs)` solves them, on arrays.
        residual: The equations, as of `ImplicitFunction`.
        avals: The shapes and dtypes of x.
        constants: Those of the constants.
        what: What the matrix of their derivatives is, for errors.
        symmetric: Whether that matrix is symmetric positive definite, as a Hessian at a minimum.

    Attributes:
        found: What `run` returned, if it ran once; None under `vmap` and `jit`.
    """

    def __init__(
        self,
        name: str,
        run: Callable[..., Found],
        residual: Callable[..., Any],
        avals: Sequence[Aval],
        constants: Sequence[Aval] = (),
        *,
        what: str,
        symmetric: bool = False,
    ) -> None:
        self._name, self._run, self._avals = name, run, avals
        self.found: Found | None = None
        # Whether results are noted; a compiled function calls it after that.
        self._notes: list[Found] | None = []
        self._failures: list[str] = []
        linear = linear_solver(name, what, "auto", iterative="cg" if symmetric else "gmres")
        # Whether there is a derivative, and whether SciPy says that it is a solution.
        constants = [*constants, Aval((), INTEGER), Aval((), INTEGER)]
        self._function = ImplicitFunction(
            name, residual, avals, constants, linear, self._usable, symmetric=symmetric
        )

    def _solve(self, *inputs: Any) -> tuple[Any, ...]:
        try:
            found = self._run(*(np.asarray(x) for x in inputs))
        except RuntimeError as error:
            if not _is_scipys(error):
                raise
            said = " ".join(str(error).split()).rstrip(".")
            raise ConvergenceError(_NO_SOLUTION.format(self._name, said)) from error
        if self._notes is not None:
            self._notes.append(found)
            self._failures += [found.failure] if found.failure else []
        usable = found.failure is None
        success = usable if found.success is None else found.success
        x = [np.asarray(leaf, aval.dtype) for leaf, aval in zip(found.x, self._avals, strict=True)]
        flags = (np.array(flag, INTEGER) for flag in (usable, success))
        return *x, *found.constants, *flags

    def _usable(self, constants: Sequence[Any], v: Any) -> Any:
        """A vector of a derivative, which there is only of a solution."""
        said = self._failures[0] if self._failures else "x does not solve the equations"
        failure = Failure(ConvergenceError, _NO_SOLUTION.format(self._name, said))
        return require([v], 1 - astype(constants[-2], v.dtype), 0.5, failure)[0]

    def __call__(self, inputs: Sequence[Any], guesses: int) -> tuple[list[Any], list[Any]]:
        """The solution, and the constants; the last of them is 1 for success."""
        values = list(self._function(self._solve, inputs, guesses))
        if not is_unknown(values[0]) and self._notes:
            self.found = self._notes[0]
        self._notes, count = None, len(self._avals)
        return values[:count], values[count:]


def _is_scipys(error: BaseException) -> bool:
    """Whether SciPy raised an error, and not a function that it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith("scipy.")


def is_plain(inputs: Sequence[Any]) -> bool:
    """Whether all inputs are arrays, so that nothing is to be differentiated."""
    return not any(isinstance(x, Tensor) for x in inputs)


def as_tuple(args: Any) -> tuple[Any, ...]:
    """The further arguments of a function, as SciPy takes them."""
    return args if isinstance(args, tuple) else (args,)


def failure_of(succeeded: Any, message: Any, wrong: str | None) -> str | None:
    """Why there is no derivative: what is wrong with x, and what SciPy says; None if x is right."""
    if succeeded or wrong is None:
        return wrong
    return f"{' '.join(str(message).split()).rstrip('.')}; {wrong}"


class Groups:
    """Several lists of inputs as one.

    Attributes:
        inputs: All of them.
    """

    def __init__(self, *groups: Sequence[Any]) -> None:
        self._counts = [len(group) for group in groups]
        self.inputs = [x for group in groups for x in group]

    def split(self, inputs: Sequence[Any]) -> list[Sequence[Any]]:
        """Inputs as lists of the same lengths."""
        found, start = [], 0
        for count in self._counts:
            found.append(inputs[start : start + count])
            start += count
        return found
