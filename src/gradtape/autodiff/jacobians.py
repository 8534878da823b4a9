"""Jacobians, Hessians and their products: compositions of `vjp`, `jvp` and `vmap`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import tree
from gradtape.autodiff.arguments import (
    as_primals,
    deliver,
    function_and_argnums,
    has_tensors,
    selected,
)
from gradtape.autodiff.holomorphic import check_complex, holomorphic_only
from gradtape.autodiff.reverse import Pullback, grad, of_run, record
from gradtape.autodiff.transforms import check_tuples, jvp, vmap
from gradtape.core.aval import Aval, aval_of
from gradtape.core.portable import Transformed
from gradtape.core.walk import own
from gradtape.errors import DTypeError, NotDifferentiableError, ShapeError
from gradtape.ops.cast import conj
from gradtape.ops.shape import reshape

Argnums = int | Sequence[int]


def _basis(aval: Aval) -> Any:
    """All unit vectors of a space, stacked along a new first axis."""
    size = math.prod(aval.shape)
    return np.eye(size, dtype=aval.dtype).reshape(size, *aval.shape)


def _check_kind(transform: str, values: Sequence[Any], holomorphic: bool) -> None:
    """Raise for complex numbers: one number cannot hold the derivatives by both parts.

    If the function is holomorphic, everything has to be complex instead.
    """
    if holomorphic:
        check_complex(transform, values)
        return
    for value in values:
        if aval_of(value).dtype.kind == "c":
            raise DTypeError(
                f"{transform}: got {aval_of(value)}, expected real arguments and results. Use "
                "holomorphic=True for a holomorphic function; else split complex ones into real "
                "and imaginary parts, or use gt.jvp and gt.vjp"
            )


def jacrev(
    function: Callable[..., Any], argnums: Argnums = 0, *, holomorphic: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian row by row, by reverse mode.

    Best where there are fewer outputs than inputs: all rows are pulled back in one batched pass.

    Args:
        function: The function to differentiate; returns arrays or nested containers.
        argnums: Which positional argument(s) to differentiate with respect to.
        holomorphic: Whether the function is complex-differentiable; see `gt.grad`.

    Returns:
        A function of the same arguments. For an output of shape `s` and an argument of shape `a`
        the Jacobian has shape `s + a`; containers nest as output, then argument.

    >>> gt.jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    function, argnums = function_and_argnums(function, argnums, "jacrev")

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        run, _ = _recorded("jacrev", function, args, kwargs, argnums, holomorphic)
        return _rows(run, isinstance(argnums, int), holomorphic)

    return Transformed(jacobian, jacrev, (function, argnums), {"holomorphic": holomorphic})


def _recorded(
    name: str, function: Any, args: Any, kwargs: dict[str, Any], argnums: Argnums, holomorphic: bool
) -> tuple[Pullback, list[Any]]:
    """A recorded run of a function, and what to differentiate by; checks both ends of it."""
    chosen = selected(argnums, len(args), name)
    leaves = [leaf for n in chosen for leaf in tree.flatten(args[n])[0]]
    _check_kind(name, leaves, holomorphic)
    run = record(function, args, kwargs, chosen, name)
    _check_kind(name, run.outs, holomorphic)
    return run, leaves


def _rows(run: Pullback, single: bool, holomorphic: bool) -> Any:
    """The Jacobian of a recorded run: unit cotangents of every output, pulled back as a batch."""
    avals = [aval_of(out) for out in run.outs]

    def jacobian_of(position: int) -> Any:
        def pull(ct: Any) -> Any:
            cts = [ct if i == position else None for i in range(len(avals))]
            grads = run.pull(cts)
            return grads[0] if single else grads

        aval = avals[position]
        rows = vmap(pull)(_basis(aval))
        if holomorphic:
            rows = holomorphic_only("jacobian", rows, vmap(pull)(1j * _basis(aval)))
            rows = tree.map_leaves(conj, rows)
        return tree.map_leaves(
            lambda leaf: _shaped(leaf, aval.shape + leaf.shape[1:], run.tensors), rows
        )

    return run.unflatten([jacobian_of(i) for i in range(len(avals))])


def jacfwd(
    function: Callable[..., Any], argnums: Argnums = 0, *, holomorphic: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian column by column, by forward mode.

    Best where there are fewer inputs than outputs: all columns are pushed in one batched pass.

    Args:
        function: The function to differentiate; returns arrays or nested containers.
        argnums: Which positional argument(s) to differentiate with respect to.
        holomorphic: Whether the function is complex-differentiable; see `gt.grad`.

    Returns:
        As for `jacrev`.

    >>> gt.jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    function, argnums = function_and_argnums(function, argnums, "jacfwd")

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = selected(argnums, len(args), "jacfwd")
        structure = tree.flatten([args[n] for n in chosen])[1]
        values = [v for n in chosen for v in as_primals(args[n], "jacfwd", f"argument {n}")[1]]
        _check_kind("jacfwd", values, holomorphic)

        def of_leaves(*changed: Any) -> Any:
            full = list(args)
            for n, part in zip(chosen, tree.unflatten(structure, list(changed)), strict=True):
                full[n] = part
            return function(*full, **kwargs)

        columns = [_columns(of_leaves, values, i, holomorphic) for i in range(len(values))]
        # Columns nest as argument, then output; users get output, then argument.
        outs, out_structure = tree.flatten(columns[0])
        _check_kind("jacfwd", outs, holomorphic)
        flat = [tree.flatten(column)[0] for column in columns]
        per_output = []
        for i in range(len(outs)):
            parts = tree.unflatten(structure, [column[i] for column in flat])
            per_output.append(parts[0] if isinstance(argnums, int) else tuple(parts))
        return tree.unflatten(out_structure, per_output)

    return Transformed(jacobian, jacfwd, (function, argnums), {"holomorphic": holomorphic})


def _columns(
    function: Callable[..., Any], values: list[Any], position: int, holomorphic: bool
) -> Any:
    """Derivatives with respect to one argument, its axes last."""
    aval = aval_of(values[position])

    def push(tangent: Any) -> Any:
        def of_one(value: Any) -> Any:
            return function(*values[:position], value, *values[position + 1 :])

        return jvp(of_one, (values[position],), (tangent,))[1]

    columns = vmap(push, out_axes=-1)(_basis(aval))
    if holomorphic:
        turned = vmap(push, out_axes=-1)(1j * _basis(aval))
        columns = holomorphic_only("jacobian", columns, turned)
    tensors = has_tensors(values)
    return tree.map_leaves(
        lambda leaf: _shaped(leaf, leaf.shape[:-1] + aval.shape, tensors), columns
    )


def _shaped(leaf: Any, shape: tuple[int, ...], tensors: bool) -> Any:
    """A Jacobian in its final shape, as users get it."""
    return deliver(own(reshape(leaf, shape), set()), tensors=tensors)


def jacobian(
    function: Callable[..., Any], argnums: Argnums = 0, *, holomorphic: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian in the mode that needs fewer passes.

    Args:
        function: The function to differentiate; returns arrays or nested containers.
        argnums: Which positional argument(s) to differentiate with respect to.
        holomorphic: Whether the function is complex-differentiable; see `gt.grad`.

    Returns:
        As for `jacrev`.

    >>> gt.jacobian(lambda x: np.outer(x, x)[0])(np.array([1.0, 2.0]))
    array([[2., 0.],
           [2., 1.]])
    """
    function, argnums = function_and_argnums(function, argnums, "jacobian")
    forward = jacfwd(function, argnums, holomorphic=holomorphic)

    def choose(*args: Any, **kwargs: Any) -> Any:
        run, leaves = _recorded("jacobian", function, args, kwargs, argnums, holomorphic)
        rows = sum(math.prod(aval_of(out).shape) for out in run.outs)
        columns = sum(math.prod(aval_of(leaf).shape) for leaf in leaves)
        if columns < rows:
            # A function with only a custom_vjp in it has no forward mode.
            with contextlib.suppress(NotDifferentiableError):
                return forward(*args, **kwargs)
        return _rows(run, isinstance(argnums, int), holomorphic)

    return Transformed(choose, jacobian, (function, argnums), {"holomorphic": holomorphic})


def hessian(
    function: Callable[..., Any], argnums: Argnums = 0, *, holomorphic: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the matrix of second derivatives, of each output.

    Args:
        function: The function to differentiate; returns arrays or nested containers.
        argnums: Which positional argument(s) to differentiate with respect to.
        holomorphic: Whether the function is complex-differentiable; see `gt.grad`.

    Returns:
        A function of the same arguments; for an output of shape `s`, which is `()` for a scalar
        function, and an argument of shape `a` the Hessian has shape `s + a + a`.

    >>> gt.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    >>> gt.hessian(lambda x: x**3)(np.array([1.0, 2.0])).shape
    (2, 2, 2)
    """
    function, argnums = function_and_argnums(function, argnums, "hessian")

    def gradient(*args: Any, **kwargs: Any) -> Any:
        chosen = selected(argnums, len(args), "hessian")
        run = record(function, args, kwargs, chosen, "hessian")
        single = isinstance(argnums, int)
        if len(run.outs) == 1 and aval_of(run.outs[0]).shape == ():
            return of_run(run, single, False, holomorphic)[1]
        _check_kind("hessian", run.outs, holomorphic)
        return _rows(run, single, holomorphic)

    forward = jacfwd(gradient, argnums, holomorphic=holomorphic)
    reverse = jacrev(gradient, argnums, holomorphic=holomorphic)

    def second(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(NotDifferentiableError):  # as in `jacobian`
            return forward(*args, **kwargs)
        return reverse(*args, **kwargs)

    return Transformed(second, hessian, (function, argnums), {"holomorphic": holomorphic})


def hvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The product of the Hessian of a scalar function with a vector, without the Hessian.

    Args:
        function: The function to differentiate; returns a scalar.
        primals: Its arguments, as a tuple.
        tangents: The vector, a tuple of the same structure.

    Returns:
        The product, in the form of the argument (a tuple for several arguments).

    >>> gt.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    array([6., 0.])
    """
    check_tuples("hvp", primals=primals, tangents=tangents)
    if len(primals) != len(tangents):
        raise ShapeError(
            f"hvp: got {len(primals)} primals and {len(tangents)} tangents, expected one tangent "
            "per primal"
        )
    argnums: Argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(function, argnums), primals, tangents)[1]
