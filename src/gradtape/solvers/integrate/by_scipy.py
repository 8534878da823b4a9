"""Initial value problems without derivatives, solved by SciPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import tree
from gradtape.core.tensor import Tensor


class _TensorReturnedError(Exception):
    """A function returned a tensor, which SciPy does not take."""


def by_scipy(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    events: Sequence[Callable[..., Any]],
    **options: Any,
) -> Any | None:
    """What `scipy.integrate.solve_ivp` returns; None if anything is a tensor.

    Args:
        fun: The right-hand side.
        t_span: The times where to begin and to end.
        y0: y at the beginning.
        events: Functions whose zeros are found.
        options: Further arguments of SciPy's function.
    """
    import scipy.integrate

    leaves, _ = tree.flatten([t_span, y0, options])
    if any(isinstance(leaf, Tensor) for leaf in leaves):
        return None
    if callable(options.get("jac")):
        options["jac"] = _of_arrays(options["jac"])
    watched = [_of_arrays(event) for event in events] or None
    try:
        return scipy.integrate.solve_ivp(_of_arrays(fun), t_span, y0, events=watched, **options)
    except _TensorReturnedError:
        return None


def _of_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which raises if it returns tensors."""

    def of_arrays(*args: Any) -> Any:
        out = function(*args)
        parts = out if isinstance(out, list | tuple) else (out,)
        if any(isinstance(part, Tensor) for part in parts):
            raise _TensorReturnedError
        return out

    # What SciPy reads of events.
    for name in ("terminal", "direction"):
        if hasattr(function, name):
            setattr(of_arrays, name, getattr(function, name))
    return of_arrays
