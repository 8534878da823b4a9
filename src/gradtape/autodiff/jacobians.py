"""Jacobians, Hessians and their products: compositions of `vjp`, `jvp` and `vmap`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from gradtape import containers
from gradtape.autodiff.arguments import (
    as_primals,
    deliver,
    function_and_argnums,
    has_tensors,
    selected,
)
from gradtape.autodiff.holomorphic import check_complex, holomorphic_only
from gradtape.autodiff.jacobian_plan import Schedule
from gradtape.autodiff.jacobian_sweeps import unit_vectors
from gradtape.autodiff.reverse import Pullback, grad, of_run, record
from gradtape.autodiff.scheduler import SchedulerConfig, SchedulingStrategy, scheduler_config
from gradtape.autodiff.transforms import check_tuples, jvp, vmap
from gradtape.core.aval import aval_of
from gradtape.core.nested import unshell
from gradtape.core.portable import Transformed
from gradtape.core.tensor import Tensor
from gradtape.core.walk import own
from gradtape.errors import DTypeError, ShapeError
from gradtape.ops.shape import reshape

Argnums = int | Sequence[int]
Mode = str | SchedulingStrategy | SchedulerConfig
_REVERSE = SchedulerConfig(strategy=SchedulingStrategy.Reverse)
# A gradient has as many elements as its argument. Forward mode is the better of the two: it gives
# NaN, where reverse mode over reverse mode may give 0, at kinks such as that of a norm.
_FORWARD_OVER_REVERSE = SchedulerConfig(forward_mode_threshold=1.0)


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
    function: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian row by row, by reverse mode.

    Best where there are fewer outputs than inputs: all rows are pulled back in one batched pass.

    Args:
        function: The function to differentiate; returns arrays or nested containers.
        argnums: Which positional argument(s) to differentiate with respect to.
        has_aux: Whether the function returns `(output, aux)`; then `(jacobian, aux)` is returned.
        holomorphic: Whether the function is complex-differentiable; see `gt.grad`.

    Returns:
        A function of the same arguments. For an output of shape `s` and an argument of shape `a`
        the Jacobian has shape `s + a`; containers nest as output, then argument.

    >>> gt.jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    function, argnums = function_and_argnums(function, argnums, "jacrev")
    run = _scheduled("jacrev", function, argnums, _REVERSE, has_aux, holomorphic)
    options = {"has_aux": has_aux, "holomorphic": holomorphic}
    return Transformed(lambda *a, **k: run(*a, **k)[0], jacrev, (function, argnums), options)


def _scheduled(
    name: str,
    function: Callable[..., Any],
    argnums: Argnums,
    mode: Mode,
    has_aux: bool,
    holomorphic: bool,
) -> Callable[..., tuple[Any, Schedule]]:
    """A function that computes the Jacobian, with aux if there is one, and the schedule."""
    config = scheduler_config(mode, name)

    def run(*args: Any, **kwargs: Any) -> tuple[Any, Schedule]:
        recorded = _recorded(name, function, args, kwargs, argnums, has_aux, holomorphic)
        single = isinstance(argnums, int)
        found, schedule = _accumulated(recorded, single, config, holomorphic)
        return (found, recorded.aux) if has_aux else found, schedule

    return run


def _recorded(
    name: str,
    function: Any,
    args: Any,
    kwargs: dict[str, Any],
    argnums: Argnums,
    has_aux: bool,
    holomorphic: bool,
) -> Pullback:
    """A recorded run of a function; checks both ends of it."""
    chosen = selected(argnums, len(args), name)
    _check_kind(
        name, [leaf for n in chosen for leaf in containers.flatten(args[n])[0]], holomorphic
    )
    run = record(function, args, kwargs, chosen, name, has_aux=has_aux)
    _check_kind(name, run.outs, holomorphic)
    return run


def _accumulated(
    run: Pullback, single: bool, config: SchedulerConfig, holomorphic: bool
) -> tuple[Any, Schedule]:
    """The Jacobian of a recorded run, and how it was accumulated."""
    rows, schedule = run.jacobian(config)
    if holomorphic:
        rows = holomorphic_only("jacobian", rows, run.jacobian(_REVERSE, 1j)[0])
    return run.unflatten([row[0] if single else row for row in rows]), schedule


def jacfwd(
    function: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian column by column, by forward mode.

    Best where there are fewer inputs than outputs: all columns are pushed in one batched pass, and
    nothing is recorded.

    Args:
        function: The function to differentiate; returns arrays or nested containers.
        argnums: Which positional argument(s) to differentiate with respect to.
        has_aux: Whether the function returns `(output, aux)`; then `(jacobian, aux)` is returned.
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
        structure = containers.flatten([args[n] for n in chosen])[1]
        values = [v for n in chosen for v in as_primals(args[n], "jacfwd", f"argument {n}")[1]]
        _check_kind("jacfwd", values, holomorphic)

        def of_leaves(*changed: Any) -> Any:
            full = list(args)
            for n, part in zip(chosen, containers.unflatten(structure, list(changed)), strict=True):
                full[n] = part
            return function(*full, **kwargs)

        outs, out_structure, aux = _columns(of_leaves, values, has_aux, holomorphic)
        per_output = []
        for parts in outs:
            nested = containers.unflatten(structure, parts)
            per_output.append(nested[0] if isinstance(argnums, int) else tuple(nested))
        found = containers.unflatten(out_structure, per_output)
        return (found, *aux) if has_aux else found

    options = {"has_aux": has_aux, "holomorphic": holomorphic}
    return Transformed(jacobian, jacfwd, (function, argnums), options)


def _columns(
    function: Callable[..., Any], values: list[Any], has_aux: bool, holomorphic: bool
) -> tuple[list[list[Any]], containers.Structure, list[Any]]:
    """For each output its derivatives by each value, the structure of the outputs, and [aux]."""
    avals = [aval_of(value) for value in values]
    aux: list[Any] = []

    def push(*tangents: Any) -> Any:
        # What is passed on depends on no tangent, and is the same for the whole batch.
        _, pushed, *rest = jvp(function, tuple(values), tangents, has_aux=has_aux)
        aux[:] = rest
        return pushed

    columns = vmap(push, out_axes=-1)(*unit_vectors(avals))
    outs, structure = containers.flatten(columns)
    _check_kind("jacfwd", outs, holomorphic)
    if holomorphic:
        turned = vmap(push, out_axes=-1)(*unit_vectors(avals, (1j,)))
        outs = holomorphic_only("jacobian", outs, containers.flatten(turned)[0])
    tensors = has_tensors(values)
    ends = list(itertools.accumulate([math.prod(aval.shape) for aval in avals], initial=0))
    found = []
    for out in outs:
        parts = [out[..., slice(*ends_of)] for ends_of in itertools.pairwise(ends)]
        shaped = [reshape(p, p.shape[:-1] + a.shape) for p, a in zip(parts, avals, strict=True)]
        found.append([deliver(own(part, set()), tensors=tensors) for part in shaped])
    return found, structure, containers.map_leaves(lambda x: _delivered(x, tensors), aux)


def _delivered(value: Any, tensors: bool) -> Any:
    """A value that is passed on, as users get it."""
    return deliver(unshell(value), tensors=tensors) if isinstance(value, Tensor) else value


def jacobian(
    function: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    mode: Mode = "auto",
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian in the mode that takes the least time.

    The function is run once and recorded. Then the Jacobian is accumulated forward, in reverse, or
    mixed: cut where few numbers pass, with a product of the Jacobians of the pieces.

    Args:
        function: The function to differentiate; returns arrays or nested containers.
        argnums: Which positional argument(s) to differentiate with respect to.
        mode: "auto", "forward", "reverse" or "mixed", a `gt.SchedulingStrategy`, or a
            `gt.SchedulerConfig`.
        has_aux: Whether the function returns `(output, aux)`; then `(jacobian, aux)` is returned.
        holomorphic: Whether the function is complex-differentiable; see `gt.grad`.

    Returns:
        As for `jacrev`. The function has a method `schedule`, which takes the same arguments and
        tells which mode is chosen for them, and why.

    Raises:
        ArgumentError: There is no such mode.

    >>> gt.jacobian(lambda x: np.outer(x, x)[0])(np.array([1.0, 2.0]))
    array([[2., 0.],
           [2., 1.]])
    >>> print(gt.jacobian(lambda x: np.sum(x**2)).schedule(np.ones(1000)))
    reverse
      1 × 1000: reverse; forward mode takes 1000 tangents, reverse mode 1 cotangents
    """
    function, argnums = function_and_argnums(function, argnums, "jacobian")
    run = _scheduled("jacobian", function, argnums, mode, has_aux, holomorphic)
    options = {"mode": mode, "has_aux": has_aux, "holomorphic": holomorphic}
    return _with_schedule(run, jacobian, (function, argnums), options)


def _with_schedule(
    run: Callable[..., tuple[Any, Schedule]],
    transform: Any,
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> Transformed:
    """The function that a transform makes, with a method that tells the schedule."""
    made = Transformed(lambda *args, **kwargs: run(*args, **kwargs)[0], transform, args, options)
    made.__dict__["schedule"] = lambda *args, **kwargs: run(*args, **kwargs)[1]
    return made


def hessian(
    function: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    mode: Mode = "auto",
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the matrix of second derivatives, of each output.

    It is the Jacobian of the gradient, which is computed in reverse mode.

    Args:
        function: The function to differentiate; returns arrays or nested containers.
        argnums: Which positional argument(s) to differentiate with respect to.
        mode: How the gradient is differentiated, as for `jacobian`; "auto" is forward mode, or
            mixed.
        has_aux: Whether the function returns `(output, aux)`; then `(hessian, aux)` is returned.
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
        run = record(function, args, kwargs, chosen, "hessian", has_aux=has_aux)
        single = isinstance(argnums, int)
        if len(run.outs) == 1 and aval_of(run.outs[0]).shape == ():
            found = of_run(run, single, False, holomorphic)[1]
        else:
            _check_kind("hessian", run.outs, holomorphic)
            found, _ = _accumulated(run, single, _REVERSE, holomorphic)
        return (found, run.aux) if has_aux else found

    chosen_mode = _FORWARD_OVER_REVERSE if mode == "auto" else mode
    run = _scheduled("hessian", gradient, argnums, chosen_mode, has_aux, holomorphic)
    options = {"mode": mode, "has_aux": has_aux, "holomorphic": holomorphic}
    return _with_schedule(run, hessian, (function, argnums), options)


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
