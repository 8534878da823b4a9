"""Forward-mode and batching transforms: `jvp`, `vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import containers
from gradtape.autodiff.arguments import (
    as_function,
    as_primals,
    check_results,
    checked,
    deliver,
    has_tensors,
    run,
)
from gradtape.autodiff.batch import BatchLevel
from gradtape.autodiff.forward import ForwardLevel, zeros_like
from gradtape.autodiff.reverse import output_and_aux
from gradtape.backends import is_raw
from gradtape.core.aval import aval_of
from gradtape.core.call import lift
from gradtape.core.finite import is_traced
from gradtape.core.needed_ops import needed
from gradtape.core.portable import Transformed
from gradtape.core.state import adopted
from gradtape.core.tensor import Tensor, is_followed, note_places
from gradtape.core.walk import own
from gradtape.errors import ArgumentError, AxisError, DTypeError, ShapeError, a_type

_NO_BATCH = "give in_axes=None for what is not a batch"


def jvp(
    function: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Run a function and push a tangent of its arguments forward to its output.

    Args:
        function: The function to differentiate.
        primals: Its arguments, as a tuple: arrays, tensors, floats, nested containers of them.
        tangents: The direction, a tuple of the same structure.
        has_aux: Whether the function returns `(output, aux)`; `aux` is passed on as it is.

    Returns:
        `(output, output_tangent)`, with `aux` as third if asked for.

    Raises:
        ArgumentError: The primals or tangents are not a tuple.
        ShapeError: A tangent does not have the shape of its primal.
        DTypeError: A primal is not floating or complex.

    >>> gt.jvp(lambda x: x * x, (3.0,), (1.0,))
    (np.float64(9.0), np.float64(6.0))
    """
    check_tuples("jvp", primals=primals, tangents=tangents)
    function = as_function(function, "jvp")
    leaves, values, structure = as_primals(tuple(primals), "jvp", "primals")
    directions, directions_structure = containers.flatten(tuple(tangents))
    if structure != directions_structure:
        raise ShapeError(
            f"jvp: the tangents have structure {containers.outline(directions_structure)}, "
            f"expected that of the primals, {containers.outline(structure)}, where * is an array "
            "or a number"
        )
    level = ForwardLevel()
    tensors = has_tensors([*leaves, *directions])
    try:
        duals = [
            level.dual(x, checked(t, x, "jvp", containers.Place("tangent", tangents, n), "primal"))
            for n, (x, t) in enumerate(zip(values, directions, strict=True))
        ]
        note_places(duals, leaves)
        out = run(function, containers.unflatten(structure, duals), {})
    finally:
        level.active = False
    out, aux = output_and_aux(out, "jvp") if has_aux else (out, None)
    check_results("jvp", out, containers.flatten(out)[0], level.made_plain)

    taken = {id(value) for value in (*leaves, *directions)}

    def value_of(leaf: Any) -> Any:
        return deliver(own(level.split(leaf)[0], taken), tensors=tensors)

    def tangent_of(leaf: Any) -> Any:
        value, tangent = level.split(leaf)
        if tangent is None:
            tangent = zeros_like(value)
        return deliver(own(lift(tangent, value), taken), tensors=tensors)

    values, pushed = containers.map_leaves(value_of, out), containers.map_leaves(tangent_of, out)
    return (values, pushed, containers.map_leaves(value_of, aux)) if has_aux else (values, pushed)


def check_tuples(transform: str, **given: Any) -> None:
    """Raise for primals or tangents that are not in a tuple or list."""
    for what, container in given.items():
        if not isinstance(container, tuple | list):
            raise ArgumentError(
                f"{transform}: got {what} as {a_type(container)}, expected a tuple with one entry "
                f"per argument: {transform}(f, (x,), (dx,))"
            )


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return a function that runs `function` on every element of a batch at once.

    Args:
        function: A function of single elements.
        in_axes: Which axis of each argument is the batch: one number for all, or a tuple with one
            entry per argument; None for an argument that is the same for the whole batch. Entries
            may be nested containers that match the argument's.
        out_axes: Where the batch axis goes in the results, likewise.

    Returns:
        A function of batches that returns batches. Keyword arguments are not batched.

    Raises:
        AxisError: An argument does not have the batch axis.
        ShapeError: Batch sizes differ.

    >>> gt.vmap(np.dot)(np.ones((5, 3)), np.ones((5, 3)))
    array([3., 3., 3., 3., 3.])
    """
    function = as_function(function, "vmap")

    def batched(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = containers.flatten(args, view=containers.ALL_ARRAYS)
        leaves = [adopted(leaf) for leaf in leaves]
        axes = _axes_for(in_axes, args)
        level = BatchLevel(_batch_size(leaves, axes, args))
        tensors = has_tensors(leaves)
        full = [
            leaf if axis is None else level.batched(leaf, axis % len(leaf.shape))
            for leaf, axis in zip(leaves, axes, strict=True)
        ]
        records = [_record(leaf) for leaf in full]
        given = containers.unflatten(structure, full)
        _note_elements(given, full, leaves)
        try:
            out = run(function, given, kwargs)
            outs, out_structure = containers.flatten(out, view=containers.ALL_ARRAYS)
            _check_arrays(out, outs)
            places = _places(out_axes, out)
            taken = {id(leaf) for leaf in leaves}
            results = [
                deliver(own(level.unbatch(o, place), taken), tensors=tensors)
                for o, place in zip(outs, places, strict=True)
            ]
            written = [n for n, leaf in enumerate(full) if _record(leaf) is not records[n]]
            _write_back(given, [(leaves[n], full[n], axes[n]) for n in written], level)
            held = {(id(full[n]), axes[n]): leaves[n] for n in written if is_traced(leaves[n])}
            # A compiled function looks for what was written to its arguments among its results.
            results = [
                outside.fresh() if (outside := held.get((id(o), place))) is not None else result
                for o, place, result in zip(outs, places, results, strict=True)
            ]
        finally:
            level.active = False
        return containers.unflatten(out_structure, results)

    return Transformed(batched, vmap, (function, in_axes, out_axes), {})


def _note_elements(given: Any, full: list[Any], leaves: list[Any]) -> None:
    """Note which arguments without axes are places: those of modules, and of plain tensors."""
    without_axes = [
        (arg, leaf)
        for arg, leaf in zip(full, leaves, strict=True)
        if isinstance(arg, Tensor) and arg is not leaf and not arg.shape
    ]
    if without_axes:
        members = containers.members_in(given)
        held = set(map(id, containers.flatten(members, view=containers.ALL_ARRAYS)[0]))
        for arg, leaf in without_axes:
            if id(arg) in held or (isinstance(leaf, Tensor) and not is_followed(leaf)):
                arg._place = True


def _record(leaf: Any) -> Any:
    return leaf.record if isinstance(leaf, Tensor) else None


def _write_back(given: Any, written: list[tuple[Any, Any, int | None]], level: BatchLevel) -> None:
    """Give buffers of stacked modules what was written to those of the module of one element.

    Args:
        given: The arguments as the function got them.
        written: Arguments that were written to: the leaf outside, that inside, and the batch axis.
        level: The level of the batch.
    """
    if not written:
        return
    buffers = {id(b) for member in containers.members_in(given) for _, b in member.named_buffers()}
    for outside, inside, axis in written:
        if axis is not None and id(inside) in buffers:
            outside[...] = level.unbatch(inside, axis)


def _check_arrays(out: Any, leaves: Sequence[Any]) -> None:
    """Raise for results that cannot be put together along a batch axis."""
    for n, leaf in enumerate(leaves):
        if not (isinstance(leaf, Tensor) or is_raw(leaf) or hasattr(leaf, "__array__")):
            raise DTypeError(
                f"vmap: {containers.Place('the result', out, n, view=containers.ALL_ARRAYS)} is "
                f"{a_type(leaf)}, expected an array or a number, or containers of them"
            )


def _places(out_axes: Any, out: Any) -> list[int]:
    """The position of the batch axis in every leaf of the results."""
    places = _per_leaf(out_axes, out, "out_axes does not match the results")
    if any(place is None for place in places):
        raise ArgumentError("vmap: out_axes is None for a result, expected an axis for each")
    return places


def _axes_for(in_axes: Any, args: tuple[Any, ...]) -> list[int | None]:
    """The batch axis of every leaf of the arguments."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ArgumentError(
            f"vmap: in_axes has {len(in_axes)} entries, expected one per argument, {len(args)}"
        )
    return _per_leaf(in_axes, args, "in_axes does not match the arguments")


def _per_leaf(axes: Any, container: Any, mismatch: str) -> list[Any]:
    """An axis for every leaf of a container."""
    try:
        return containers.broadcast_prefix(axes, container, view=containers.ALL_ARRAYS)
    except ValueError as error:
        raise ArgumentError(f"vmap: {mismatch}: {error}") from None


def _batch_size(leaves: list[Any], axes: list[int | None], args: tuple[Any, ...]) -> int:
    """The common size of all batch axes."""
    sizes = {}
    for number, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        if not isinstance(leaf, Tensor) and not is_raw(leaf):
            where = containers.argument_place(args, number, view=containers.ALL_ARRAYS)
            raise DTypeError(
                f"vmap: {where} is {a_type(leaf)}, expected an array or a tensor; {_NO_BATCH}"
                + where.advice
            )
        shape = aval_of(leaf).shape
        if not -len(shape) <= axis < len(shape):
            where = containers.argument_place(args, number, view=containers.ALL_ARRAYS)
            raise AxisError(f"vmap: {where} has shape {shape} and no axis {axis}; {_NO_BATCH}")
        sizes[number] = shape[axis]
    if not sizes:
        raise ArgumentError("vmap: in_axes is None for every argument, expected at least one batch")
    if len(set(sizes.values())) > 1:
        named = {
            containers.argument_place(args, n, view=containers.ALL_ARRAYS): s
            for n, s in sizes.items()
        }
        found = ", ".join(f"{where}: {size}" for where, size in named.items())
        raise ShapeError(
            f"vmap: got batches of different sizes, {found}, expected one size; {_NO_BATCH}"
        )
    return int(next(iter(sizes.values())))


needed.fill(jvp=jvp)
