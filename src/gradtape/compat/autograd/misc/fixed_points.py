"""Fixed points of iterations, differentiated by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.compat.autograd.core import defvjp, primitive
from gradtape.compat.autograd.differential_operators import make_vjp
from gradtape.compat.autograd.vspaces import vspace

Function = Callable[..., Any]


@primitive
def fixed_point(f: Function, a: Any, x0: Any, distance: Function, tol: float) -> Any:
    """The x with `f(a)(x) = x` that an iteration from `x0` converges to.

    It is differentiated with respect to `a`, whatever way led there; `gt.implicit.fixed_point` is
    the function of gradtape for it.

    Args:
        f: Returns the function to iterate, given the parameter.
        a: The parameter.
        x0: Where to begin.
        distance: The distance between two steps.
        tol: The iteration ends when the distance is no larger.

    >>> from gradtape.compat.autograd import grad
    >>> from gradtape.compat.autograd.misc.fixed_points import fixed_point
    >>> def root(a):
    ...     newton = lambda a: lambda x: 0.5 * (x + a / x)
    ...     return fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-12)
    >>> grad(root)(4.0).round(9)
    np.float64(0.25)
    """
    step = f(a)
    x, before = step(x0), x0
    while distance(x, before) > tol:
        x, before = step(x), x
    return x


def _fixed_point_vjp(
    ans: Any, f: Function, a: Any, x0: Any, distance: Function, tol: float
) -> Function:
    # x = f(a, x), so with the cotangent g of x: u = g + uᵀ·∂f/∂x, and that of a is uᵀ·∂f/∂a.
    def adjoint(params: Any) -> Function:
        a, x, g = params
        vjp_x, _ = make_vjp(f(a))(x)
        vs = vspace(x)
        return lambda u: vs.add(vjp_x(u), g)

    vjp_a, _ = make_vjp(lambda a, x: f(a)(x))(a, ans)

    def vjp(g: Any) -> Any:
        return vjp_a(fixed_point(adjoint, (a, ans, g), vspace(x0).zeros(), distance, tol))

    return vjp


defvjp(fixed_point, None, _fixed_point_vjp, None)
