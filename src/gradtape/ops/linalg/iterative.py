"""Equations solved step by step to a tolerance: the method of conjugate gradients and its kin.

Derivatives are those of the exact solution, by solving equations with the adjoint matrix to the
same tolerance; the steps are not recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.define import added, general
from gradtape.errors import LinAlgError
from gradtape.locks import load
from gradtape.ops.linalg.common import adjoint
from gradtape.ops.linalg.stacks import batch_stacks, computed_in, over_stack, stack_of, summed

# A method: its name and when it ends, as keyword arguments of SciPy's function.
Options = tuple[tuple[str, Any], ...]


@functools.cache
def _method(name: str) -> Callable[..., Any]:
    return getattr(load("scipy.sparse.linalg"), name)  # type: ignore[no-any-return]


def operator(
    size: int,
    dtype: Any,
    product: Callable[[Any], Any],
    adjoint: Callable[[Any], Any] | None = None,
) -> Any:
    """A linear map as SciPy takes it, with its adjoint for methods that ask for it."""
    import scipy.sparse.linalg

    shape = (size, size)
    return scipy.sparse.linalg.LinearOperator(shape, product, rmatvec=adjoint, dtype=dtype)


def iterate(name: str, a: Any, b: Any, x0: Any, m: Any, options: Options) -> tuple[Any, int]:
    """The solution for one vector `b`, and SciPy's code for why it ended, 0 for success.

    Cotangents can be of any size, and SciPy takes small numbers for a failure: `b` is scaled.
    """
    scale = np.abs(b).max(initial=0)
    scale = scale if scale > 0 and np.isfinite(scale) else b.real.dtype.type(1)
    goal = dict(options)
    if "atol" in goal:  # minres has none
        goal["atol"] = goal["atol"] / scale
    start = None if x0 is None else x0 / scale
    solve = functools.partial(_method(name), a, b / scale, x0=start, M=m, **goal)
    x, info = solve()
    if callable(x):
        x = _reached(solve, np.zeros_like(b) if start is None else start)
    return x * scale, int(info)


def _reached(solve: Callable[..., Any], start: Any) -> Any:
    """What a method came to before it broke down, where SciPy gives a function in its place.

    SciPy 1.15 does so for `bicg` and `cgs`.
    """
    seen = [start]
    solve(callback=seen.append)
    return seen[-1]


def converged(name: str, info: int, missed: Any, b: Any) -> None:
    """Raise unless a method converged: a partial solution is no derivative.

    Args:
        name: Of the method.
        info: How it ended; 0 if it says that it converged.
        missed: The residual b − A·x.
        b: The right hand side.
    """
    # A tolerance below rounding is never met; the residual is then as small as it can be.
    rounding = 64 * len(b) * np.finfo(b.dtype).eps * np.abs(b).max(initial=0)
    if info and not np.abs(missed).max(initial=0) <= rounding:
        raise LinAlgError(
            f"{name}: a derivative did not converge (info {info}), expected the equations with the "
            "adjoint matrix to converge as well; raise maxiter or rtol, or give a better M"
        )


def _forward(
    _xp: Any, a: Any, b: Any, x0: Any, m: Any, method: str, options: Options, strict: bool
) -> Any:
    dtype = computed_in(a.dtype, b.dtype)
    preconditioned = m.shape[-1] > 0

    def one(a: Any, b: Any, x0: Any, m: Any) -> Any:
        x, info = iterate(method, a, b[:, 0], x0[:, 0], m if preconditioned else None, options)
        if strict:
            converged(method, info, b[:, 0] - a @ x, b[:, 0])
        return x[:, None].astype(dtype, copy=False), np.array(info)

    return over_stack(one, *(x.astype(dtype, copy=False) for x in (a, b, x0, m)))


def _infer(a: Aval, b: Aval, x0: Aval, m: Aval, **_how: Any) -> tuple[Aval, Aval]:
    stack = stack_of(a, b, x0, m)
    dtype = computed_in(a.dtype, b.dtype)
    return Aval((*stack, *b.shape[-2:]), dtype), Aval(stack, np.dtype(np.int64))


def _vjp(
    wanted: tuple[bool, ...], ct: Any, out: Any, a: Any, _b: Any, _x0: Any, m: Any, **how: Any
) -> Any:
    back = _again(adjoint(a), ct[0], adjoint(m), **how)
    return -(back @ adjoint(out[0])) if wanted[0] else None, back, None, None


def _jvp(tangents: Sequence[Any], out: Any, a: Any, _b: Any, _x0: Any, m: Any, **how: Any) -> Any:
    da, db, _, _ = tangents
    change = added(db, None if da is None else -(da @ out[0]))
    # The starting point and the preconditioner do not change the solution.
    return (None if change is None else _again(a, change, m, **how)), None


def _again(a: Any, b: Any, m: Any, **how: Any) -> Any:
    return iterated(a, b, 0 * b, m, **{**how, "strict": True})[0]


# x = A⁻¹b: dx = A⁻¹(db − dA·x)
iterated = general(
    "iterative_solve",
    _forward,
    infer=_infer,
    vjp_all=summed(_vjp),
    jvp=_jvp,
    batch=batch_stacks,
    outputs=2,
)
