"""A report on the kernels that a call of a function used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradtape.core.kernels import Ran
from gradtape.core.state import Scope, State, run_inside
from gradtape.errors import ArgumentError, a_type


class CallReport(NamedTuple):
    """The ops on large arrays in a call, in order; to be printed.

    Attributes:
        result: The result of the function.
        ran: Each op or derivative rule on large arrays, with the strategy that did it.
    """

    result: Any
    ran: tuple[Ran, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.ran)) or "no op came to the kernels: NumPy did all of it"


class _Logging(Scope):
    """A scope in which kernels log what they do."""

    def __init__(self) -> None:
        self.log: list[Ran] = []

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(log=self.log)


def explain_call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> CallReport:
    """Call a function and report which kernel ran each op on large arrays.

    Ops on small arrays are NumPy's and are not listed, nor are `@` of two matrices and comparisons,
    which are NumPy's whatever the size. A function compiled by `gt.jit` reports by its own
    `explain`.

    Args:
        function: The function to call.
        *args: Its arguments.
        **kwargs: Its keyword arguments.

    Returns:
        The result, and a line for each op or derivative rule.

    Raises:
        ArgumentError: What was given is not a function.

    >>> x = np.ones((300, 200))
    >>> print(gt.explain_call(gt.grad(lambda x: np.sum(np.tanh(x))), x))
    tanh(float64[300, 200]): tiles
    sum(float64[300, 200]): parts
    gradient of tanh(float64[300, 200]): tiles
    """
    if not callable(function):
        raise ArgumentError(
            f"explain_call: got {a_type(function)}, expected a function; give it what to call, and "
            "the arguments after that: gt.explain_call(f, x)"
        )
    logging = _Logging()
    result = run_inside(logging, lambda: function(*args, **kwargs))
    return CallReport(result, tuple(logging.log))
