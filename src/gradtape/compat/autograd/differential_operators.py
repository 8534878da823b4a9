"""autograd's differential operators: functions of functions, for one argument or several.

Gradients of complex arguments are in autograd's convention: for a real function f of z = x + iy,
`grad(f)` is df/dx − i·df/dy, the conjugate of what `gt.grad` gives.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.autodiff.checkpoint import checkpoint as _checkpoint
from gradtape.autodiff.reverse import Pullback
from gradtape.autodiff.scheduler import scheduler_config
from gradtape.autodiff.tape_graph import ancestors
from gradtape.compat.autograd.core import (
    make_jvp as _make_jvp,
    make_vjp as _make_vjp,
    pulled,
    recorded,
)
from gradtape.compat.autograd.primitives import primitive_of
from gradtape.compat.autograd.vspaces import ArrayVSpace, vspace
from gradtape.compat.autograd.wrap_util import get_name, unary_to_nary
from gradtape.errors import ArgumentError, DTypeError, GradtapeWarning, a_type
from gradtape.ops.cast import real
from gradtape.ops.contract import tensordot
from gradtape.ops.join import stack
from gradtape.ops.like import ndim
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import reshape

Function = Callable[..., Any]

make_vjp = unary_to_nary(_make_vjp)
make_jvp = unary_to_nary(_make_jvp)


# ---- gradients ----------------------------------------------------------------------------------


@unary_to_nary
def grad(fun: Function, x: Any) -> Any:
    """Returns a function which computes the gradient of `fun` with respect to an argument.

    The result of `fun` is one real number, or an array of one element. The returned function takes
    the same arguments; the gradient has the type of the argument: an array, a number, or lists,
    tuples and dicts of them.

    Args:
        fun: The function to differentiate.
        argnum: The position of the argument; a tuple or list of positions gives a tuple of
            gradients.

    Raises:
        DTypeError: The function returns more than one number, or a complex one; or the argument is
            no floating number or array.

    >>> from gradtape.compat.autograd import grad
    >>> grad(lambda x, y: x**2 * y, 1)(3.0, 5.0)
    np.float64(9.0)
    """
    run = recorded(fun, x, "grad")
    return pulled(fun, run, [_one(run, "grad")], last=True)


@unary_to_nary
def value_and_grad(fun: Function, x: Any) -> tuple[Any, Any]:
    """Returns a function that computes the value of `fun` and its gradient, as `grad` does.

    >>> from gradtape.compat.autograd import value_and_grad
    >>> value_and_grad(lambda x: x**2)(3.0)
    (np.float64(9.0), np.float64(6.0))
    """
    run = recorded(fun, x, "value_and_grad")
    seed = _one(run, "value_and_grad")
    value = run.value(copy=True)
    return value, pulled(fun, run, [seed], last=True)


def _one(run: Pullback, name: str) -> Any:
    """The cotangent of the result of a run, which has to be a real number."""
    spaces = [vspace(out) for out in run.outs]
    if sum(space.size for space in spaces) != 1:
        raise DTypeError(
            f"{name.capitalize()} only applies to real scalar-output functions, got "
            f"{', '.join(map(_described, spaces)) or None}. Try jacobian, elementwise_grad or "
            "holomorphic_grad."
        )
    return spaces[0].ones()


def _described(space: Any) -> str:
    return f"{space.dtype}{list(space.shape)}"


@unary_to_nary
def elementwise_grad(fun: Function, x: Any) -> Any:
    """Returns a function that computes the gradient of the sum of what `fun` returns.

    If each element of the result depends on one element of the argument only, this is the
    derivative of each.

    >>> from gradtape.compat.autograd import elementwise_grad
    >>> elementwise_grad(lambda x: x**2)(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    run = recorded(fun, x, "elementwise_grad")
    spaces = [vspace(out) for out in run.outs]
    if any(space.iscomplex for space in spaces):
        raise DTypeError(
            "elementwise_grad only applies to real-output functions, got "
            f"{', '.join(map(_described, spaces))}. Try holomorphic_grad."
        )
    return pulled(fun, run, [space.ones() for space in spaces], last=True)


@unary_to_nary
def deriv(fun: Function, x: Any) -> Any:
    """Returns a function that computes the derivative of `fun` by forward mode.

    It is the derivative along a vector of ones, so that of each element if the function treats
    every element alike.

    >>> from gradtape.compat.autograd import deriv
    >>> deriv(lambda x: x**2)(3.0)
    np.float64(6.0)
    """
    return _make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def holomorphic_grad(fun: Function, x: Any) -> Any:
    """Returns a function that computes the complex derivative of a holomorphic function.

    >>> from gradtape.compat.autograd import holomorphic_grad
    >>> holomorphic_grad(lambda z: z**2)(1.0 + 2.0j)
    np.complex128(2+4j)
    """
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", GradtapeWarning, stacklevel=3)
    return grad(lambda x: real(fun(x)))(x)


def grad_named(fun: Function, argname: str) -> Any:
    """The gradient of `fun` with respect to the argument of a name, which is passed by position.

    >>> from gradtape.compat.autograd import grad_named
    >>> grad_named(lambda x, y: x * y, "y")(3.0, 5.0)
    np.float64(3.0)
    """
    names = inspect.getfullargspec(fun).args
    if argname not in names:
        raise ArgumentError(
            f"grad_named: got {argname!r}, expected one of the arguments of {get_name(fun)}: "
            f"{', '.join(names)}"
        )
    return grad(fun, names.index(argname))


@unary_to_nary
def grad_and_aux(fun: Function, x: Any) -> tuple[Any, Any]:
    """Returns a function that computes the gradient of the first result, and passes on the second.

    >>> from gradtape.compat.autograd import grad_and_aux
    >>> grad_and_aux(lambda x: (x**2, "squared"))(3.0)
    (np.float64(6.0), 'squared')
    """
    aux: list[Any] = []

    def first(x: Any) -> Any:
        out = fun(x)
        if not isinstance(out, tuple | list) or len(out) != 2:
            raise ArgumentError(
                f"grad_and_aux: the function returned {a_type(out)}, expected a pair of what to "
                "differentiate and what to pass on"
            )
        aux.append(out[1])
        return out[0], aux

    first.__dict__.update(vars(fun))
    run = recorded(first, x, "grad_and_aux", has_aux=True)
    seed = _one(run, "grad_and_aux")
    assert run.aux is not None
    return pulled(fun, run, [seed], last=True), run.aux[0]


def multigrad_dict(fun: Function) -> Any:
    """Returns a function that computes the gradients with respect to all arguments, by name.

    >>> from gradtape.compat.autograd import multigrad_dict
    >>> multigrad_dict(lambda x, y=2.0: x * y)(3.0)
    {'x': np.float64(2.0), 'y': np.float64(3.0)}
    """
    signature = inspect.signature(fun)

    def gradfun(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_dict(arguments: dict[str, Any]) -> Any:
            again = inspect.BoundArguments(signature, arguments)
            return fun(*again.args, **again.kwargs)

        found = grad(of_dict)(dict(bound.arguments))
        return {name: found[name] for name in bound.arguments}

    return gradfun


# ---- matrices -----------------------------------------------------------------------------------


@unary_to_nary
def jacobian(fun: Function, x: Any) -> Any:
    """Returns a function that computes the Jacobian of `fun` with respect to an array.

    If the result has shape `s` and the argument shape `a`, it has shape `s + a`.

    >>> from gradtape.compat.autograd import jacobian
    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    of, run = vspace(x), recorded(fun, x, "jacobian")
    spaces = [vspace(out) for out in run.outs]
    if not isinstance(of, ArrayVSpace) or len(spaces) != 1:
        raise DTypeError(
            f"jacobian: got {a_type(x)} as argument and {len(spaces)} result(s), expected an array "
            "or a number each; use make_vjp, or autograd.misc.flatten_func"
        )
    to: Any = spaces[0]
    if to.iscomplex:
        raise DTypeError(
            f"jacobian: the function returned {_described(to)}, expected real numbers; split the "
            "result into real and imaginary parts, or use gt.jacobian(f, holomorphic=True)"
        )
    # Rules of users take one cotangent, not a batch of them; and one row needs no batch.
    if to.size > 1 and not of.iscomplex and not _has_primitives(run):
        return run.jacobian(scheduler_config("auto", "jacobian"))[0][0][0]
    rows = [pulled(fun, run, [row]) for row in to.standard_basis()]
    shape = (*to.shape, *of.shape)
    return reshape(stack(rows), shape) if rows else np.zeros(shape, of.dtype)


def _has_primitives(run: Pullback) -> bool:
    """Whether a run has called primitives of users."""
    records = ancestors([node for node, _ in run.ends if node is not None])
    return any(primitive_of(record.op) is not None for record in records)


@unary_to_nary
def hessian(fun: Function, x: Any) -> Any:
    """Returns a function that computes the Hessian of `fun`: the Jacobian of its Jacobian.

    >>> from gradtape.compat.autograd import hessian
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    return jacobian(jacobian(fun))(x)


# ---- products -----------------------------------------------------------------------------------


@unary_to_nary
def make_hvp(fun: Function, x: Any) -> tuple[Function, Any]:
    """Returns a function that makes products with the Hessian at a point: `(hvp, gradient)`.

    >>> from gradtape.compat.autograd import make_hvp
    >>> hvp, gradient = make_hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    >>> hvp(np.array([1.0, 0.0])), gradient
    (array([6., 0.]), array([ 3., 12.]))
    """
    return _make_vjp(grad(fun), x)


def hessian_tensor_product(fun: Function, argnum: int = 0) -> Any:
    """Returns a function of the arguments of `fun` and a tensor: the product with the Hessian.

    >>> from gradtape.compat.autograd import hessian_tensor_product
    >>> hessian_tensor_product(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    fun_grad = grad(fun, argnum)

    def along(*args: Any, **kwargs: Any) -> Any:
        *args_of_fun, vector = args
        return tensordot(fun_grad(*args_of_fun, **kwargs), vector, ndim(vector))

    return grad(along, argnum)


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Any:
    """Returns a function of the arguments of `fun` and a tensor: the product with the Jacobian.

    >>> from gradtape.compat.autograd import tensor_jacobian_product
    >>> tensor_jacobian_product(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([2., 4.])
    """

    def along(*args: Any, **kwargs: Any) -> Any:
        *args_of_fun, vector = args
        return tensordot(vector, fun(*args_of_fun, **kwargs), ndim(vector))

    return jacobian(along, argnum)


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Function, x: Any) -> Function:
    """Returns a function that makes products of the Jacobian with tangents, by reverse mode alone.

    >>> from gradtape.compat.autograd.differential_operators import make_jvp_reversemode
    >>> make_jvp_reversemode(lambda x: x**2)(3.0)(1.0)
    np.float64(6.0)
    """
    vjp, y = _make_vjp(fun, x)
    return _make_vjp(vjp, vspace(y).zeros())[0]


def make_ggnvp(f: Function, g: Function | None = None, f_argnum: int = 0) -> Any:
    """Returns a function that makes products with the generalized Gauss-Newton matrix.

    Args:
        f: The inner function.
        g: The outer, scalar function of what `f` returns; half the sum of squares if not given.
        f_argnum: The position of the argument of `f`.

    >>> from gradtape.compat.autograd import make_ggnvp
    >>> make_ggnvp(lambda x: x**2)(np.array([1.0, 2.0]))(np.array([1.0, 1.0]))
    array([ 4., 16.])
    """
    outer = _half_square if g is None else g

    @unary_to_nary
    def ggnvp_of(f: Function, x: Any) -> Function:
        f_vjp, f_x = _make_vjp(f, x)
        g_hvp, grad_g_x = _make_vjp(grad(outer), f_x)
        f_jvp, _ = _make_vjp(f_vjp, vspace(grad_g_x).zeros())
        return lambda v: f_vjp(g_hvp(f_jvp(v)))

    return ggnvp_of(f, f_argnum)


def _half_square(x: Any) -> Any:
    return 0.5 * sum_of(x * x, axis=-1)


def checkpoint(fun: Function) -> Function:
    """A function that is computed again in the backward pass, so that what it needs is not kept.

    >>> from gradtape.compat.autograd import checkpoint, grad
    >>> grad(checkpoint(lambda x: np.sin(np.sin(x))))(0.0)
    np.float64(1.0)
    """
    return _checkpoint(fun)
