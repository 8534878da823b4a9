"""Branches: `cond` and `switch`.

In eager code they run as plain Python, and are recorded like it. In a function that is being traced
each becomes one op whose parameters are the graphs of the functions given to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import as_function
from gradtape.core.aval import Aval, aval_of
from gradtape.core.call import call
from gradtape.core.deferrable import deferrable
from gradtape.core.state import adopted, run_inside
from gradtape.core.tape_modes import tapes_in_force
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    IndexingError,
    ShapeError,
)
from gradtape.graph.derived import Derived
from gradtape.graph.known_values import innermost_value, is_unknown
from gradtape.graph.loop_state import (
    check_number,
    leaf_aval,
    traced_function,
)
from gradtape.graph.switch_op import branch_op, joined, out_of_range
from gradtape.ops.cast import astype
from gradtape.ops.comparison import not_equal


@deferrable
def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """Run one of two functions, as a condition says; a branch that can be traced and batched.

    Args:
        pred: The condition: one truth value, or one number, which counts as true unless it is 0.
        true_fun: Called with the operands if it holds.
        false_fun: Called with the operands otherwise.
        *operands: The arguments of both functions. They may also use arrays from outside.

    Returns:
        The result of the function that was called. Both have to return the same containers, shapes
        and dtypes if the condition is known only when a compiled function runs, or under `vmap`,
        where both are called and each element takes its own result.

    Raises:
        ShapeError: The condition is not one number; the results differ in structure or shapes.
        DTypeError: The results differ in dtypes.

    >>> absolute = lambda x: gt.cond(x > 0, lambda x: x, lambda x: -x, x)
    >>> gt.grad(absolute)(-2.0), gt.jit(absolute)(-2.0)
    (np.float64(-1.0), 2.0)
    >>> gt.vmap(absolute)(np.array([1.0, -3.0]))
    array([1., 3.])
    """
    branches = [as_function(false_fun, "cond"), as_function(true_fun, "cond")]
    check_number("cond", "the condition", pred)
    if not is_unknown(pred):
        return branches[bool(innermost_value(pred))](*operands)
    index = pred if aval_of(pred).dtype == np.bool_ else not_equal(pred, 0)
    return _branched("cond", astype(index, np.int64), branches, operands)


@deferrable
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Run one of several functions, as an integer says.

    Args:
        index: The number of the function, from 0.
        branches: The functions.
        *operands: The arguments of each of them.

    Returns:
        The result of the function that was called; see `cond`.

    Raises:
        IndexingError: No function has this number.
        DTypeError: The index is not an integer; the results differ in dtypes.
        ShapeError: The results differ in structure or shapes.

    >>> powers = [lambda x: x, lambda x: x * x, lambda x: x**3]
    >>> [gt.jit(gt.switch, static_argnums=1)(i, tuple(powers), 2.0) for i in range(3)]
    [2.0, 4.0, 8.0]
    """
    functions = [as_function(branch, "switch") for branch in branches]
    if not functions:
        raise ArgumentError("switch: got no branches, expected at least one")
    check_number("switch", "the index", index)
    if aval_of(index).dtype.kind not in "iu":
        raise DTypeError(
            f"switch: got {aval_of(index)} as index, expected an integer; for a truth value use "
            "gt.cond"
        )
    if not is_unknown(index):
        number = int(innermost_value(index))
        if not 0 <= number < len(functions):
            raise IndexingError(out_of_range(number, len(functions)))
        return functions[number](*operands)
    if aval_of(index).weak or aval_of(index).dtype != np.int64:
        index = astype(index, np.int64)
    checked = call(branch_op, (index,), {"count": len(functions)})
    return _branched("switch", checked, functions, operands)


def _branched(
    name: str, index: Any, functions: Sequence[Callable[..., Any]], operands: Sequence[Any]
) -> Any:
    """A branch on a number that is not known, or that differs within a batch."""
    leaves, structure = containers.flatten(tuple(operands), view=containers.ALL_ARRAYS)
    if (scope := tapes_in_force((index, *leaves))) is not None:
        return run_inside(scope, _branched, name, index, functions, operands)
    leaves = [adopted(leaf) for leaf in leaves]
    avals = [leaf_aval(name, leaf) for leaf in leaves]
    bodies = [
        traced_function(
            name, lambda *flat, f=function: f(*containers.unflatten(structure, list(flat))), avals
        )
        for function in functions
    ]
    first = bodies[0]
    for body in bodies[1:]:
        if body.structure != first.structure:
            raise ShapeError(
                f"{name}: the branches return {first.structure} and {body.structure}, expected the "
                "same containers from all"
            )
    dtypes = [_common(name, results) for results in zip(*(b.avals for b in bodies), strict=True)]
    bodies = [
        body
        if body.avals == dtypes
        else traced_function(name, _converted(function, structure, dtypes), avals)
        for body, function in zip(bodies, functions, strict=True)
    ]
    made, constants = joined([Derived(body.graph, body.captures) for body in bodies])
    out = made(index, *leaves, *constants)
    return containers.unflatten(first.structure, list(out))


def _converted(
    function: Callable[..., Any], structure: containers.Structure, avals: Sequence[Aval]
) -> Callable[..., Any]:
    """A branch whose Python numbers become arrays of the dtypes that the others return."""

    def converted(*flat: Any) -> Any:
        out = function(*containers.unflatten(structure, list(flat)))
        leaves, own = containers.flatten(out, view=containers.ALL_ARRAYS)
        given = [
            astype(np.asarray(leaf) if not hasattr(leaf, "dtype") else leaf, aval.dtype)
            for leaf, aval in zip(leaves, avals, strict=True)
        ]
        return containers.unflatten(own, given)

    return converted


def _common(name: str, results: Sequence[Aval]) -> Aval:
    """What all branches return at one place; Python numbers take the dtype of the others."""
    if len({aval.shape for aval in results}) > 1:
        raise ShapeError(
            f"{name}: the branches return {_listed(results)}, expected the same shapes"
        )
    fixed = [aval for aval in results if not aval.weak]
    if not fixed:
        return results[0] if len(set(results)) == 1 else Aval((), np.result_type(*_dtypes(results)))
    if len({aval.dtype for aval in fixed}) > 1:
        raise DTypeError(
            f"{name}: the branches return {_listed(results)}, expected the same dtypes; use astype"
        )
    for aval in results:
        if aval.weak and not np.can_cast(aval.dtype, fixed[0].dtype, "same_kind"):
            raise DTypeError(
                f"{name}: the branches return {_listed(results)}, expected the same "
                "dtypes; use astype"
            )
    return fixed[0]


def _listed(avals: Sequence[Aval]) -> str:
    return ", ".join([str(aval) for aval in avals])


def _dtypes(avals: Sequence[Aval]) -> list[np.dtype[Any]]:
    return [aval.dtype for aval in avals]
