"""Loops: `while_loop`, `fori_loop`, `scan`, `map`.

In eager code they run as plain Python, and are recorded like it. In a function that is being traced
each becomes one op whose parameters are the graphs of the functions given to it, however many steps
it takes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import as_function, has_tensors
from gradtape.core.aval import Aval, aval_of
from gradtape.core.deferrable import deferrable
from gradtape.core.state import adopted, run_inside
from gradtape.core.tape_modes import tapes_in_force
from gradtape.core.tensor import Tensor
from gradtape.errors import (
    DTypeError,
    ShapeError,
)
from gradtape.graph.ir import Graph, Value
from gradtape.graph.known_values import innermost_value, is_batched, is_traced, is_unknown
from gradtape.graph.loop_state import (
    Same,
    State,
    Traced,
    Watch,
    check_number,
    checked_save,
    leaf_aval,
    pair,
    steps_of,
    traced_function,
)
from gradtape.graph.run import replay
from gradtape.graph.scan_op import STEP, Scan
from gradtape.graph.while_op import Save, While
from gradtape.ops.cast import astype
from gradtape.ops.join import concatenate, stack
from gradtape.ops.select import where
from gradtape.ops.shape import reshape

# ---- loops of unknown length --------------------------------------------------------------------


@deferrable
def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init: Any,
    *,
    save: Save = "all",
) -> Any:
    """Repeat a function of a state as long as a condition on the state holds.

    Args:
        cond_fun: Takes the state and returns whether to go on: one truth value.
        body_fun: Takes the state and returns the next, of the same containers, shapes and dtypes.
        init: The first state: an array, a number, or containers of them. A Python number takes the
            dtype that `body_fun` gives it.
        save: Which states a backward pass through the loop keeps: "all" of them; about the square
            root of their number ("sqrt"); or at most a given number. The others are computed again,
            one stretch at a time.

    Returns:
        The first state for which the condition does not hold. Under `vmap` each element of the
        batch stops by itself.

    Raises:
        ShapeError: The body changes the structure or shapes of the state; the condition is not one
            truth value.
        DTypeError: The body changes a dtype.

    >>> def root(a):
    ...     return gt.while_loop(lambda s: np.abs(s * s - a) > 1e-9, lambda s: 0.5 * (s + a / s), a)
    >>> f"{root(2.0):.6f}, {gt.jit(gt.grad(root))(2.0):.6f}"
    '1.414214, 0.353553'
    """
    cond_fun, body_fun = as_function(cond_fun, "while_loop"), as_function(body_fun, "while_loop")
    save = checked_save("while_loop", save)
    leaves, structure = containers.flatten(init, view=containers.ALL_ARRAYS)
    if save == "all" and not is_traced(leaves):
        return _while_in_python(cond_fun, body_fun, init)
    if (scope := tapes_in_force(leaves)) is not None:
        again = functools.partial(while_loop, cond_fun, body_fun, init, save=save)
        return run_inside(scope, again)
    leaves = [adopted(leaf) for leaf in leaves]
    state = State("while_loop", leaves, structure)

    def step(*flat: Any) -> Any:
        return body_fun(containers.unflatten(structure, list(flat)))

    body = state.settled(lambda avals: traced_function("while_loop", step, avals))
    test = traced_function(
        "while_loop",
        lambda *flat: cond_fun(containers.unflatten(structure, list(flat))),
        state.avals,
    )
    _check_condition("while_loop", test.structure, test.avals)
    made = _loop(test, body, len(leaves), save)
    captures = (*test.captures, *body.captures)
    out = made(*captures, *state.values)
    return containers.unflatten(structure, list(out))


def _loop(test: Traced, body: Traced, carries: int, save: Save) -> While:
    """A loop of two graphs, each of which is given the captures of both."""

    def arranged(own: Traced, before: Sequence[Value], after: Sequence[Value]) -> Graph:
        inputs = own.graph.inputs
        more = (
            *(Value(value.aval) for value in before),
            *inputs[carries:],
            *(Value(value.aval) for value in after),
        )
        return Graph(own.graph.name, (*more, *inputs[:carries]), own.graph.nodes, own.graph.outputs)

    of_test, of_body = test.graph.inputs[carries:], body.graph.inputs[carries:]
    consts = len(of_test) + len(of_body)
    return While(arranged(test, (), of_body), arranged(body, of_test, ()), consts, save)


def _while_in_python(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], state: Any
) -> Any:
    watch = Watch("while_loop", state)
    state = watch.first
    # Of a batch, the elements that go on, and the state with those that have stopped.
    alive, chosen = None, state
    while True:
        go_on = cond_fun(state)
        if not isinstance(go_on, bool | np.bool_):
            leaves, structure = containers.flatten(go_on, view=containers.ALL_ARRAYS)
            _check_condition("while_loop", structure, [leaf_aval("while_loop", x) for x in leaves])
        if alive is not None or (isinstance(go_on, Tensor) and is_batched(go_on)):
            alive = go_on if alive is None else alive & go_on
            if not np.any(innermost_value(alive)):
                return chosen
            state, chosen = _chosen(alive, watch.checked(body_fun(state)), chosen)
        elif innermost_value(go_on):
            state = chosen = watch.checked(body_fun(state))
        else:
            return state


def _chosen(alive: Any, new: Any, old: Any) -> tuple[Any, Any]:
    """The state for the next step of a batch, and the one that elements which have stopped keep.

    They differ in values that all elements have in common, such as counters. Those stay as they
    are for the next step, so that Python numbers remain Python numbers.
    """
    leaves, structure = containers.flatten(new, view=containers.ALL_ARRAYS)
    kept = [
        where(alive, x, y)
        for x, y in zip(leaves, containers.flatten(old, view=containers.ALL_ARRAYS)[0], strict=True)
    ]
    going = [
        y if isinstance(x, Tensor) and is_batched(x) else x
        for x, y in zip(leaves, kept, strict=True)
    ]
    return containers.unflatten(structure, going), containers.unflatten(structure, kept)


def _check_condition(name: str, structure: containers.Structure, avals: Sequence[Aval]) -> None:
    if structure is not containers.SINGLE or avals[0].shape != ():
        what = f"{structure}" if structure is not containers.SINGLE else str(avals[0])
        raise ShapeError(
            f"{name}: the condition is {what}, expected one truth value; use np.any or np.all"
        )
    if avals[0].dtype != np.bool_:
        raise DTypeError(
            f"{name}: the condition is {avals[0]}, expected a truth value; use a comparison"
        )


@deferrable
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init: Any,
    *,
    save: Save = "all",
) -> Any:
    """Repeat a function of a state and a number that counts from `lower` to `upper`.

    Args:
        lower: The first number.
        upper: The number to stop before.
        body_fun: Takes the number, which is an integer that takes the dtype of what it is combined
            with, and the state; returns the next state, as in `while_loop`.
        init: The first state.
        save: Which states a backward pass keeps, as in `while_loop`.

    Returns:
        The last state; the first one if `upper` is not above `lower`.

    Raises:
        DTypeError: The bounds are not integers; the body changes a dtype.
        ShapeError: The body changes the structure or shapes of the state.

    >>> gt.fori_loop(0, 10, lambda i, s: s + i * 2.0, 0.0)
    90.0
    """
    body_fun = as_function(body_fun, "fori_loop")
    for what, bound in (("lower", lower), ("upper", upper)):
        check_number("fori_loop", what, bound)
        if aval_of(bound).dtype.kind not in "iu":
            raise DTypeError(f"fori_loop: got {what}={bound!r}, expected an integer")
    if is_unknown(lower) or is_unknown(upper):
        # Counting in a small dtype would overflow before an upper bound of a larger one.
        lower, upper = _bound(lower), _bound(upper)
        state = while_loop(
            lambda s: s[0] < s[2],
            lambda s: (s[0] + 1, body_fun(s[0], s[1]), s[2]),
            (lower, init, upper),
            save=save,
        )
        return state[1]
    first, last = (int(innermost_value(bound)) for bound in (lower, upper))
    return _scanned(
        "fori_loop",
        lambda i, state, _: (body_fun(i + first if first else i, state), ()),
        init,
        (),
        max(0, last - first),
        save=save,
        counted=True,
    )[0]


def _bound(value: Any) -> Any:
    """A bound of a loop: a Python integer if it is known, and otherwise one of 64 bits."""
    if not is_unknown(value):
        return int(innermost_value(value))
    return value if aval_of(value).weak else astype(value, np.int64)


# ---- loops over arrays --------------------------------------------------------------------------


@deferrable
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    *,
    reverse: bool = False,
    save: Save = "all",
) -> tuple[Any, Any]:
    """Go through arrays element by element with a state: `carry, y = f(carry, x)`.

    Args:
        f: Takes the state and an element of `xs`; returns the next state, of the same containers,
            shapes and dtypes, and a result.
        init: The first state: an array, a number, or containers of them. A Python number takes the
            dtype that `f` gives it.
        xs: An array, or containers of arrays, to go through along the first axis; None for none.
        length: The number of steps; needed if there are no `xs`.
        reverse: Whether to go from the last element to the first. Results stay at the places of
            their elements.
        save: Which states a backward pass keeps: "all", with the results of expensive operations;
            about the square root of their number ("sqrt"); or at most a given number.

    Returns:
        The last state, and the results, stacked along a first axis.

    Raises:
        ShapeError: The arrays have different lengths; `f` changes the structure or shapes of the
            state.
        DTypeError: `f` changes a dtype of the state.

    >>> gt.scan(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 1., 3.]))
    """
    f = as_function(f, "scan")

    def step(_i: Any, carry: Any, x: Any) -> tuple[Any, Any]:
        return pair("scan", f(carry, x))

    count = steps_of("scan", xs, length)
    return _scanned("scan", step, init, xs, count, reverse=bool(reverse), save=save)


@deferrable
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Apply a function to each element of arrays, one after the other, and stack the results.

    Unlike `vmap` it does not work on all elements at once: loops and branches in `f` go their own
    way for each element, and intermediate results take the memory of one. Compiled, elements are
    divided among threads if there is enough to do.

    Args:
        f: Takes an element of `xs`, returns arrays or containers of them.
        xs: An array, or containers of arrays, to go through along the first axis.

    Returns:
        The results, stacked along a first axis.

    Raises:
        ShapeError: The arrays have different lengths, or there are none.

    >>> gt.map(lambda x: x * x, np.array([1.0, 2.0]))
    array([1., 4.])
    """
    f = as_function(f, "map")
    count = steps_of("map", xs, None)
    return _scanned("map", lambda _i, _carry, x: ((), f(x)), (), xs, count, save="all")[1]


def _scanned(
    name: str,
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    length: int,
    *,
    reverse: bool = False,
    save: Save = "all",
    counted: bool = False,
) -> tuple[Any, Any]:
    """A loop of known length: `carry, y = step(i, carry, x)`."""
    save = checked_save(name, save)
    leaves, structure = containers.flatten(init, view=containers.ALL_ARRAYS)
    arrays, xs_structure = containers.flatten(xs, view=containers.ALL_ARRAYS)
    plain = save == "all" or length < 2
    if plain and length and not is_traced([*leaves, *arrays]):
        return _scan_in_python(name, step, init, arrays, xs_structure, length, reverse)
    if counted and not length and not is_traced(leaves):
        Watch(name, init)  # there are no results, so nothing has to be known of the function
        return init, ()
    if (scope := tapes_in_force((*leaves, *arrays))) is not None:
        again = functools.partial(_scanned, reverse=reverse, save=save, counted=counted)
        return run_inside(scope, again, name, step, init, xs, length)
    leaves, arrays = [adopted(leaf) for leaf in leaves], [adopted(array) for array in arrays]
    state = State(name, leaves, structure)
    elements = [Aval(aval_of(x).shape[1:], np.dtype(aval_of(x).dtype)) for x in arrays]
    first = [STEP] if counted else []

    def flat_step(*flat: Any) -> Any:
        values = list(flat)
        i = values.pop(0) if counted else None
        carry = containers.unflatten(structure, values[: len(leaves)])
        return step(i, carry, containers.unflatten(xs_structure, values[len(leaves) :]))

    body = state.settled(
        lambda avals: traced_function(name, flat_step, [*first, *avals, *elements], parts=2)
    )
    count = len(body.graph.inputs) - len(body.captures)
    made = Scan(
        with_captures_first(body.graph, 0, count),
        len(body.captures),
        len(leaves),
        length,
        reverse,
        counted,
    )
    given = (*body.captures, *state.values)
    out = made(*given, *arrays) if plain else _in_stretches(name, made, given, arrays, save)
    ys = list(out[len(leaves) :])
    carry = containers.unflatten(structure, list(out[: len(leaves)]))
    return carry, containers.unflatten(body.second, ys)


def _scan_in_python(
    name: str,
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    carry: Any,
    arrays: Sequence[Any],
    xs_structure: containers.Structure,
    length: int,
    reverse: bool,
) -> tuple[Any, Any]:
    watch = Watch(name, carry)
    carry = watch.first
    made: list[list[Any]] = []
    results = Same(name, "results")
    steps = range(length)
    for t in reversed(steps) if reverse else steps:
        x = containers.unflatten(xs_structure, [array[t] for array in arrays])
        new, y = step(t, carry, x)
        carry = watch.checked(new)
        made.append([watch.kept(leaf) for leaf in results.leaves(y)])
    if reverse:
        made.reverse()
    columns = zip(*made, strict=True)
    ys = [_stacked(x, aval.dtype) for x, aval in zip(columns, results.avals, strict=True)]
    return carry, containers.unflatten(results.structure, ys)


def _stacked(values: Sequence[Any], dtype: np.dtype[Any]) -> Any:
    """Values along a new first axis; Python numbers among them get the dtype of the others."""
    arrays = [value if hasattr(value, "dtype") else np.asarray(value, dtype) for value in values]
    return stack(arrays) if has_tensors(values) else np.stack(arrays)


def _in_stretches(
    name: str, made: Scan, given: Sequence[Any], arrays: Sequence[Any], save: Save
) -> list[Any]:
    """A scan of scans, whose backward pass keeps only the carry before each stretch."""
    kept = math.isqrt(made.length - 1) + 1 if save == "sqrt" else int(save)
    size = -(-made.length // min(kept, made.length))
    whole, rest = divmod(made.length, size)
    split = whole * size  # the elements after it are a shorter stretch
    consts, carry, ys = given[: made.consts], list(given[made.consts :]), []
    for is_rest in (True, False) if made.reverse else (False, True):
        if is_rest and not rest:
            continue
        if is_rest:
            part = made._replace(length=rest)
            out = _run_from(name, part, split, consts, carry, [x[split:] for x in arrays])
        else:
            shaped = [reshape(x[:split], (whole, size, *x.shape[1:])) for x in arrays]
            out = _run_stretches(name, made._replace(length=size), whole, consts, carry, shaped)
        carry = out[: made.carries]
        ys.append(out[made.carries :])
    if made.reverse:
        ys.reverse()
    joint = ys[0] if len(ys) == 1 else [concatenate(parts) for parts in zip(*ys, strict=True)]
    return [*carry, *joint]


def _run_stretches(
    name: str,
    inner: Scan,
    count: int,
    consts: Sequence[Any],
    carry: Sequence[Any],
    arrays: Sequence[Any],
) -> list[Any]:
    """Run a scan for each stretch; results are in the order of the elements."""

    def stretch(*values: Any) -> Any:
        own, i, rest = values[: inner.consts], values[inner.consts], values[inner.consts + 1 :]
        states, rows = rest[: inner.carries], rest[inner.carries :]
        return tuple(_run_from(name, inner, i * inner.length, own, states, rows))

    inputs = inner.body.inputs
    avals = [value.aval for value in inputs[: inner.consts]]
    avals += [STEP, *(inputs[n].aval for n in inner.carry_places)]
    avals += [Aval(x.shape[1:], np.dtype(x.dtype)) for x in arrays]
    body = traced_function(name, stretch, avals)
    graph = with_captures_first(body.graph, inner.consts, len(avals))
    first = inner.consts + len(body.captures)
    outer = Scan(graph, first, inner.carries, count, inner.reverse, True, "carry")
    out = outer(*consts, *body.captures, *carry, *arrays)
    ys = [reshape(y, (count * inner.length, *y.shape[2:])) for y in out[inner.carries :]]
    return [*out[: inner.carries], *ys]


def _run_from(
    name: str,
    scan: Scan,
    first: Any,
    consts: Sequence[Any],
    carry: Sequence[Any],
    arrays: Sequence[Any],
) -> list[Any]:
    """Run a scan whose first step has the number `first`."""
    if not scan.counted:
        return list(scan(*consts, *carry, *arrays))
    count = scan.consts

    def step(*values: Any) -> Any:
        own, before, i = values[:count], values[count], values[count + 1]
        return tuple(replay(scan.body, (*own, before + i, *values[count + 2 :])))

    avals = [value.aval for value in scan.body.inputs]
    body = traced_function(name, step, [*avals[:count], STEP, *avals[count:]])
    shifted = scan._replace(body=body.graph, consts=count + 1)
    return list(shifted(*consts, first, *carry, *arrays))


def with_captures_first(graph: Graph, place: int, count: int) -> Graph:
    """The graph with its inputs after the first `count` moved to a place among these."""
    inputs = graph.inputs
    order = (*inputs[:place], *inputs[count:], *inputs[place:count])
    return Graph(graph.name, order, graph.nodes, graph.outputs)
