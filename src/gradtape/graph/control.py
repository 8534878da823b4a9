"""Branches and loops: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`.

In eager code they run as plain Python, and are recorded like it. In a function that is being traced
each becomes one op whose parameters are the graphs of the functions given to it, however many steps
it takes. Both check that the state of a loop keeps its structure, shapes and dtypes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape import tree
from gradtape.autodiff.arguments import as_function, has_tensors
from gradtape.autodiff.batch import Batched
from gradtape.core.aval import Abstract, Aval, aval_of, is_numeric
from gradtape.core.call import call
from gradtape.core.deferrable import deferrable
from gradtape.core.nested import unshell
from gradtape.core.state import adopted, current, values_read
from gradtape.core.tensor import Tensor
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    IndexingError,
    ShapeError,
    UnsupportedError,
    a_type,
)
from gradtape.graph.capture import DrawCapture
from gradtape.graph.derived import Derived
from gradtape.graph.ir import Graph, Value
from gradtape.graph.run import replay
from gradtape.graph.scan_op import STEP, Scan
from gradtape.graph.switch_op import branch_op, joined, out_of_range
from gradtape.graph.trace import trace
from gradtape.graph.while_op import Save, While
from gradtape.ops.cast import astype
from gradtape.ops.comparison import not_equal
from gradtape.ops.join import concatenate, stack
from gradtape.ops.select import where
from gradtape.ops.shape import reshape

# ---- branches -----------------------------------------------------------------------------------


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
    _check_number("cond", "the condition", pred)
    if not _is_unknown(pred):
        return branches[bool(_innermost(pred))](*operands)
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
    _check_number("switch", "the index", index)
    if aval_of(index).dtype.kind not in "iu":
        raise DTypeError(
            f"switch: got {aval_of(index)} as index, expected an integer; for a truth value use "
            "gt.cond"
        )
    if not _is_unknown(index):
        number = int(_innermost(index))
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
    leaves, structure = tree.flatten(tuple(operands))
    leaves = [adopted(leaf) for leaf in leaves]
    avals = [_leaf_aval(name, leaf) for leaf in leaves]
    bodies = [
        _traced(name, lambda *flat, f=function: f(*tree.unflatten(structure, list(flat))), avals)
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
        else _traced(name, _converted(function, structure, dtypes), avals)
        for body, function in zip(bodies, functions, strict=True)
    ]
    made, constants = joined([Derived(body.graph, body.captures) for body in bodies])
    out = made(index, *leaves, *constants)
    return tree.unflatten(first.structure, list(out))


def _converted(
    function: Callable[..., Any], structure: tree.Structure, avals: Sequence[Aval]
) -> Callable[..., Any]:
    """A branch whose Python numbers become arrays of the dtypes that the others return."""

    def converted(*flat: Any) -> Any:
        out = function(*tree.unflatten(structure, list(flat)))
        leaves, own = tree.flatten(out)
        given = [
            astype(np.asarray(leaf) if not hasattr(leaf, "dtype") else leaf, aval.dtype)
            for leaf, aval in zip(leaves, avals, strict=True)
        ]
        return tree.unflatten(own, given)

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
    save = _checked_save("while_loop", save)
    leaves, structure = tree.flatten(init)
    if save == "all" and not _is_traced(leaves):
        return _while_in_python(cond_fun, body_fun, init)
    leaves = [adopted(leaf) for leaf in leaves]
    state = State("while_loop", leaves, structure)

    def step(*flat: Any) -> Any:
        return body_fun(tree.unflatten(structure, list(flat)))

    body = state.settled(lambda avals: _traced("while_loop", step, avals))
    test = _traced(
        "while_loop", lambda *flat: cond_fun(tree.unflatten(structure, list(flat))), state.avals
    )
    _check_condition("while_loop", test.structure, test.avals)
    made = _loop(test, body, len(leaves), save)
    captures = (*test.captures, *body.captures)
    out = made(*captures, *state.values)
    return tree.unflatten(structure, list(out))


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
    # Of a batch, the elements that go on, and the state with those that have stopped.
    alive, chosen = None, state
    while True:
        go_on = cond_fun(state)
        if not isinstance(go_on, bool | np.bool_):
            leaves, structure = tree.flatten(go_on)
            _check_condition("while_loop", structure, [_leaf_aval("while_loop", x) for x in leaves])
        if alive is not None or (isinstance(go_on, Tensor) and _is_batched(go_on)):
            alive = go_on if alive is None else alive & go_on
            if not np.any(_innermost(alive)):
                return chosen
            state, chosen = _chosen(alive, watch.checked(body_fun(state)), chosen)
        elif _innermost(go_on):
            state = chosen = watch.checked(body_fun(state))
        else:
            return state


def _chosen(alive: Any, new: Any, old: Any) -> tuple[Any, Any]:
    """The state for the next step of a batch, and the one that elements which have stopped keep.

    They differ in values that all elements have in common, such as counters. Those stay as they
    are for the next step, so that Python numbers remain Python numbers.
    """
    leaves, structure = tree.flatten(new)
    kept = [where(alive, x, y) for x, y in zip(leaves, tree.flatten(old)[0], strict=True)]
    going = [
        y if isinstance(x, Tensor) and _is_batched(x) else x
        for x, y in zip(leaves, kept, strict=True)
    ]
    return tree.unflatten(structure, going), tree.unflatten(structure, kept)


def _check_condition(name: str, structure: tree.Structure, avals: Sequence[Aval]) -> None:
    if structure is not tree.SINGLE or avals[0].shape != ():
        what = f"{structure}" if structure is not tree.SINGLE else str(avals[0])
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
        _check_number("fori_loop", what, bound)
        if aval_of(bound).dtype.kind not in "iu":
            raise DTypeError(f"fori_loop: got {what}={bound!r}, expected an integer")
    if _is_unknown(lower) or _is_unknown(upper):
        # Counting in a small dtype would overflow before an upper bound of a larger one.
        lower, upper = _bound(lower), _bound(upper)
        state = while_loop(
            lambda s: s[0] < s[2],
            lambda s: (s[0] + 1, body_fun(s[0], s[1]), s[2]),
            (lower, init, upper),
            save=save,
        )
        return state[1]
    first, count = int(_innermost(lower)), max(0, int(_innermost(upper)) - int(_innermost(lower)))
    return _scanned(
        "fori_loop",
        lambda i, state, _: (body_fun(i + first if first else i, state), ()),
        init,
        (),
        count,
        save=save,
        counted=True,
    )[0]


def _bound(value: Any) -> Any:
    """A bound of a loop: a Python integer if it is known, and otherwise one of 64 bits."""
    if not _is_unknown(value):
        return int(_innermost(value))
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
        return _pair("scan", f(carry, x))

    count = _length("scan", xs, length)
    return _scanned("scan", step, init, xs, count, reverse=bool(reverse), save=save)


@deferrable
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Apply a function to each element of arrays, one after the other, and stack the results.

    Unlike `vmap` it does not work on all elements at once: loops and branches in `f` go their own
    way for each element, and intermediate results take the memory of one. Compiled, elements that
    are small may be divided among threads.

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
    count = _length("map", xs, None)
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
    save = _checked_save(name, save)
    leaves, structure = tree.flatten(init)
    arrays, xs_structure = tree.flatten(xs)
    plain = save == "all" or length < 2
    if plain and length and not _is_traced([*leaves, *arrays]):
        return _scan_in_python(name, step, init, arrays, xs_structure, length, reverse)
    if counted and not length and not _is_traced(leaves):
        Watch(name, init)  # there are no results, so nothing has to be known of the function
        return init, ()
    leaves, arrays = [adopted(leaf) for leaf in leaves], [adopted(array) for array in arrays]
    state = State(name, leaves, structure)
    elements = [Aval(aval_of(x).shape[1:], np.dtype(aval_of(x).dtype)) for x in arrays]
    first = [STEP] if counted else []

    def flat_step(*flat: Any) -> Any:
        values = list(flat)
        i = values.pop(0) if counted else None
        carry = tree.unflatten(structure, values[: len(leaves)])
        return step(i, carry, tree.unflatten(xs_structure, values[len(leaves) :]))

    body = state.settled(
        lambda avals: _traced(name, flat_step, [*first, *avals, *elements], parts=2)
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
    carry = tree.unflatten(structure, list(out[: len(leaves)]))
    return carry, tree.unflatten(body.second, ys)


def _scan_in_python(
    name: str,
    step: Callable[[Any, Any, Any], tuple[Any, Any]],
    carry: Any,
    arrays: Sequence[Any],
    xs_structure: tree.Structure,
    length: int,
    reverse: bool,
) -> tuple[Any, Any]:
    watch = Watch(name, carry)
    made: list[list[Any]] = []
    results = Same(name, "results")
    steps = range(length)
    for t in reversed(steps) if reverse else steps:
        x = tree.unflatten(xs_structure, [array[t] for array in arrays])
        new, y = step(t, carry, x)
        carry = watch.checked(new)
        made.append(results.leaves(y))
    if reverse:
        made.reverse()
    columns = zip(*made, strict=True)
    ys = [_stacked(x, aval.dtype) for x, aval in zip(columns, results.avals, strict=True)]
    return carry, tree.unflatten(results.structure, ys)


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
    body = _traced(name, stretch, avals)
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
    body = _traced(name, step, [*avals[:count], STEP, *avals[count:]])
    shifted = scan._replace(body=body.graph, consts=count + 1)
    return list(shifted(*consts, first, *carry, *arrays))


def with_captures_first(graph: Graph, place: int, count: int) -> Graph:
    """The graph with its inputs after the first `count` moved to a place among these."""
    inputs = graph.inputs
    order = (*inputs[:place], *inputs[count:], *inputs[place:count])
    return Graph(graph.name, order, graph.nodes, graph.outputs)


# ---- checks -------------------------------------------------------------------------------------


class Traced(NamedTuple):
    """A function given to a loop or branch, as a graph.

    Attributes:
        graph: Its inputs are the leaves of the arguments, then the captures.
        captures: What the function uses besides its arguments.
        structure: The containers of its results, or of the first of two.
        second: The containers of the second, if it returns two.
    """

    graph: Graph
    captures: tuple[Any, ...]
    structure: tree.Structure
    second: tree.Structure = None

    @property
    def avals(self) -> list[Aval]:
        """The shapes and dtypes of the results."""
        return [output.aval for output in self.graph.outputs]


def _traced(
    name: str, function: Callable[..., Any], avals: Sequence[Aval], parts: int = 1
) -> Traced:
    """Trace a function given to a loop or branch; with `parts=2` it returns a pair."""
    structures: list[tree.Structure] = []

    def flat(*args: Any) -> Any:
        out = function(*args)
        leaves = []
        structures.clear()
        for part in out if parts == 2 else (out,):
            own, structure = tree.flatten(part)
            structures.append(structure)
            for leaf in own:
                _leaf_aval(name, leaf)
            leaves += own
        return tuple(leaves)

    made = trace(flat, avals, name, rewriting=current().rewriting)
    for capture in made.captures:
        if isinstance(capture, DrawCapture):
            raise UnsupportedError(
                f"{name}: the function draws random numbers, which would be the same at every "
                "step of a compiled loop; draw them outside, and go through them"
            )
    for guard in made.guards:
        values_read(guard.array)
    captures = tuple([adopted(capture.current()) for capture in made.captures])
    return Traced(made.graph, captures, *structures)


class State:
    """The state of a traced loop: the containers, shapes and dtypes that every step has to keep.

    Attributes:
        values: The first state, flattened.
        avals: Its shapes and dtypes; Python numbers get those that the body gives them.
    """

    def __init__(self, name: str, leaves: Sequence[Any], structure: tree.Structure) -> None:
        self._name = name
        self._structure = structure
        self.values = list(leaves)
        self.avals = [_leaf_aval(name, leaf) for leaf in leaves]

    def settled(self, trace_body: Callable[[list[Aval]], Traced]) -> Traced:
        """The body, traced with the dtypes that Python numbers end up with."""
        while True:
            body = trace_body(self.avals)
            _check_structure(self._name, body.structure, self._structure)
            changed = False
            for n, (old, new) in enumerate(zip(self.avals, body.avals, strict=False)):
                if old != new:
                    changed |= self._adapt(n, old, new)
            if not changed:
                return body

    def _adapt(self, n: int, old: Aval, new: Aval) -> bool:
        """Let a Python number take the dtype of the body; returns whether it has changed."""
        if old.weak and old.shape == new.shape and np.can_cast(old.dtype, new.dtype, "same_kind"):
            value = self.values[n]
            self.avals[n] = Aval((), np.dtype(new.dtype), weak=new.weak)
            if not isinstance(value, Tensor):
                kind = float if new.weak else new.dtype.type
                self.values[n] = kind(value)
            else:
                self.values[n] = astype(value, new.dtype)
            return True
        if new.weak and new.dtype == old.dtype and new.shape == old.shape:
            return False
        raise _changed(self._name, old, new)


class Watch:
    """Checks that the state of a loop in Python keeps its structure, shapes and dtypes."""

    def __init__(self, name: str, state: Any) -> None:
        self._name = name
        leaves, self._structure = tree.flatten(state)
        self._avals = [_leaf_aval(name, leaf) for leaf in leaves]

    def checked(self, state: Any) -> Any:
        """The next state."""
        leaves, structure = tree.flatten(state)
        _check_structure(self._name, structure, self._structure)
        for n, leaf in enumerate(leaves):
            self._avals[n] = _same(self._name, self._avals[n], _leaf_aval(self._name, leaf))
        return state


class Same:
    """Checks that the results of all steps of a loop in Python have the same containers."""

    def __init__(self, name: str, what: str) -> None:
        self._name, self._what = name, what
        self.structure: tree.Structure = None
        self.avals: list[Aval] = []

    def leaves(self, out: Any) -> list[Any]:
        """The leaves of the results of a step."""
        leaves, structure = tree.flatten(out)
        avals = [_leaf_aval(self._name, leaf) for leaf in leaves]
        if self.structure is None:
            self.structure, self.avals = structure, avals
        _check_structure(self._name, structure, self.structure, self._what)
        for n, (old, new) in enumerate(zip(self.avals, avals, strict=True)):
            self.avals[n] = _same(self._name, old, new, self._what)
        return leaves


def _same(name: str, old: Aval, new: Aval, what: str = "state") -> Aval:
    """The shape and dtype of a value from step to step; a Python number may take a dtype once.

    Raises:
        ShapeError: The shape has changed.
        DTypeError: The dtype has changed.
    """
    for number, other in ((old, new), (new, old)):
        fits = number.shape == other.shape and np.can_cast(number.dtype, other.dtype, "same_kind")
        if number.weak and fits:
            return other
    if (old.shape, old.dtype) != (new.shape, new.dtype):
        raise _changed(name, old, new, what)
    return old


def _check_structure(name: str, new: Any, old: Any, what: str = "state") -> None:
    if new != old:
        raise ShapeError(
            f"{name}: the {what} becomes {new}, expected {old}, the containers it began with"
        )


def _changed(name: str, old: Aval, new: Aval, what: str = "state") -> ShapeError | DTypeError:
    kind = ShapeError if old.shape != new.shape else DTypeError
    todo = "" if kind is ShapeError else "; begin with that dtype, or use astype in the body"
    verb = "become" if what.endswith("s") else "becomes"
    return kind(f"{name}: the {what} {verb} {new}, expected {old}, as at first{todo}")


def _leaf_aval(name: str, leaf: Any) -> Aval:
    if (
        not isinstance(leaf, Tensor)
        and not hasattr(leaf, "dtype")
        and not isinstance(leaf, bool | int | float | complex)
    ):
        raise DTypeError(
            f"{name}: got {a_type(leaf)}, expected arrays, numbers, or containers of them"
        )
    aval = aval_of(unshell(leaf).value) if _symbolic(leaf) else aval_of(leaf)
    if not is_numeric(aval.dtype):
        raise DTypeError(f"{name}: got {aval}, expected arrays of numbers")
    return Aval(aval_of(leaf).shape, np.dtype(aval.dtype), weak=aval.weak)


def _symbolic(leaf: Any) -> bool:
    """Whether a leaf is a traced tensor with no other level around it: it may be a weak number."""
    value = unshell(leaf) if isinstance(leaf, Tensor) else leaf
    return isinstance(value, Tensor) and isinstance(value.value, Abstract)


def _check_number(name: str, what: str, value: Any) -> None:
    if isinstance(value, Tensor) or hasattr(value, "shape"):
        if value.shape != ():
            raise ShapeError(f"{name}: got shape {value.shape} for {what}, expected one number")
    elif not isinstance(value, bool | int | float):
        raise DTypeError(f"{name}: got {a_type(value)} for {what}, expected one number")


def _checked_save(name: str, save: Any) -> Save:
    if save in ("all", "sqrt"):
        return save  # type: ignore[no-any-return]
    try:
        count = operator.index(save)
    except TypeError:
        count = 0
    if count < 1 or isinstance(save, bool):
        raise ArgumentError(
            f"{name}: got save={save!r}, expected 'all', 'sqrt', or the number of states to keep"
        )
    return count


def _pair(name: str, out: Any) -> tuple[Any, Any]:
    if not isinstance(out, tuple) or len(out) != 2:
        raise ShapeError(
            f"{name}: the function returned {a_type(out)}, expected a pair (state, result)"
        )
    return out


def _length(name: str, xs: Any, length: Any) -> int:
    """The number of steps, from the arrays or as given."""
    leaves, _ = tree.flatten(xs)
    sizes = {}
    for n, leaf in enumerate(leaves):
        aval = _leaf_aval(name, leaf)
        if not aval.shape:
            place = tree.Place("xs", xs, n)
            raise ShapeError(
                f"{name}: {place} is {aval}, expected an array with a first axis; "
                "use np.array of a list of numbers"
            )
        sizes[n] = aval.shape[0]
    if length is not None:
        try:
            given = operator.index(length)
        except TypeError:
            raise DTypeError(
                f"{name}: got length={length!r}, expected an integer; in a compiled function use "
                "static_argnums for it, or gt.fori_loop, whose bounds may be values"
            ) from None
        if given < 0:
            raise ArgumentError(f"{name}: got length={given}, expected a number of steps")
        if any(size != given for size in sizes.values()):
            raise ShapeError(
                f"{name}: got length={given}, expected {next(iter(sizes.values()))}, the length of "
                "the arrays"
            )
        return given
    if not sizes:
        raise ArgumentError(f"{name}: got no arrays and no length, expected one of them")
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{tree.Place('xs', xs, n)}: {size}" for n, size in sizes.items())
        raise ShapeError(f"{name}: got arrays of different lengths, {found}, expected one length")
    return int(sizes[0])


# ---- what is known ------------------------------------------------------------------------------


def _levels(value: Any) -> Iterator[Any]:
    """The values below a tensor, down to the array."""
    while isinstance(value, Tensor):
        value = value.fresh()
        yield value
        value = value.value
    yield value


def _innermost(value: Any) -> Any:
    """The array that a tensor of any level holds."""
    for inner in _levels(value):
        value = inner
    return value


def _is_unknown(value: Any) -> bool:
    """Whether a number is not known while Python runs: it is traced, or stands for a batch."""
    return isinstance(value, Tensor) and (
        _is_batched(value) or isinstance(_innermost(value), Abstract) or _in_trace()
    )


def _is_batched(value: Any) -> bool:
    return any(isinstance(v, Tensor) and isinstance(v.record, Batched) for v in _levels(value))


def _in_trace() -> bool:
    """Whether a function is being traced."""
    return any(mode.kind == "tracing" for mode in current().modes)


def _is_traced(leaves: Sequence[Any]) -> bool:
    """Whether a loop has to become an op: a function is being traced, or a value is symbolic."""
    return _in_trace() or any(isinstance(_innermost(leaf), Abstract) for leaf in leaves)
