"""Calls of SciPy where there is nothing to differentiate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradtape import containers
from gradtape.errors import ConversionError, UnsupportedError
from gradtape.ops.joined import holds_tensor

Function = Callable[..., Any]


class _TensorMetError(Exception):
    """A function met a tensor, which SciPy does not take."""


def by_scipy(solve: Callable[[Callable[[Any], Any]], Any], given: Any) -> Any | None:
    """What SciPy returns; None if anything is a tensor.

    Args:
        solve: `solve(of_arrays)` calls SciPy with functions of users that `of_arrays` has wrapped.
        given: The other arguments, in containers.
    """
    leaves, _ = containers.flatten(given)
    if any(map(holds_tensor, leaves)):
        return None
    try:
        return solve(_of_arrays)
    except _TensorMetError:
        return None


def is_solver(method: Any) -> bool:
    """Whether a method is a class of solvers, as SciPy takes it."""
    if not isinstance(method, type):
        return False
    import scipy.integrate

    return issubclass(method, scipy.integrate.OdeSolver)


def with_tensors(method: Any, names: Sequence[str], only_scipy: Mapping[str, Any]) -> Any:
    """The name of a method of `solve_ivp`, which may be given by its class.

    Args:
        method: A name, or a class of solvers.
        names: Those of SciPy's methods.
        only_scipy: Options that are given, and that only SciPy has.

    Raises:
        UnsupportedError: There is such an option, or the class is not one of SciPy's.
    """
    for option in only_scipy:
        raise UnsupportedError(
            f"solve_ivp: got {option}= where there are tensors, expected it to be left out: the "
            "steps are gradtape's, and ∂f/∂y is computed by forward mode unless jac is given"
        )
    if not isinstance(method, type):
        return method
    import scipy.integrate

    for name in names:
        if getattr(scipy.integrate, name) is method:
            return name
    raise UnsupportedError(
        f"solve_ivp: got method={method.__name__} where there are tensors, expected the name of a "
        "method; the steps of other classes have no derivatives"
    )


def _of_arrays(function: Any) -> Any:
    """The function, which raises if it meets a tensor; what cannot be called as it is."""
    if not callable(function):
        return function

    def of_arrays(*args: Any) -> Any:
        try:
            out = function(*args)
        except Exception as error:
            # As `buffer[i] = tensor` does, where the buffer is like an argument; NumPy wraps it.
            met = (error, error.__cause__, error.__context__)
            if any(isinstance(one, ConversionError) for one in met):
                raise _TensorMetError from error
            raise
        if holds_tensor(out):
            raise _TensorMetError
        return out

    # What SciPy reads of events.
    for name in ("terminal", "direction"):
        if hasattr(function, name):
            setattr(of_arrays, name, getattr(function, name))
    return of_arrays
