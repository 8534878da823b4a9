"""Reverse-mode transforms: `vjp`, `grad`, `value_and_grad`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import (
    as_function,
    as_primals,
    check_results,
    checked,
    deliver,
    function_and_argnums,
    has_tensors,
    like_argument,
    run,
    selected,
)
from gradtape.autodiff.forward import ones_like, zeros_like
from gradtape.autodiff.holomorphic import check_complex, holomorphic_only
from gradtape.autodiff.jacobian_plan import Schedule
from gradtape.autodiff.jacobian_sweeps import jacobian_blocks
from gradtape.autodiff.pushforward import push
from gradtape.autodiff.scheduler import SchedulerConfig
from gradtape.core.aval import Aval, aval_of
from gradtape.core.call import is_differentiable, lift
from gradtape.core.finite import is_traced
from gradtape.core.level import Leaf, Node, Segment
from gradtape.core.needed_ops import needed
from gradtape.core.nested import unshell, wrap
from gradtape.core.portable import Transformed
from gradtape.core.state import next_level
from gradtape.core.tensor import Tensor, note_places
from gradtape.core.walk import own, walk
from gradtape.errors import DTypeError, ShapeError, a_type
from gradtape.ops.cast import conj

ndarray = np.ndarray


class Pullback:
    """A recorded run of a function: its result, and the way back from cotangents to arguments.

    Attributes:
        outs: The outputs, flattened.
        aux: The second value the function returned, with `has_aux`.
        tensors: Whether tensors went in, so that tensors come out.
    """

    def __init__(
        self,
        name: str,
        segment: Segment,
        arguments: list[Any],
        nodes: list[Leaf],
        structures: list[containers.Structure],
        out: Any,
        has_aux: bool,
    ) -> None:
        self._name, self._segment = name, segment
        self._arguments, self._nodes, self._structures = arguments, nodes, structures
        self.tensors = has_tensors(arguments)
        self.aux = None
        if has_aux:
            out, aux = output_and_aux(out, name)
            self.aux = containers.map_leaves(self._plain, aux)
        self.outs, self._out_structure = containers.flatten(out)
        check_results(name, out, self.outs, segment.made_plain)

    def _plain(self, value: Any) -> Any:
        """A result without this transform's level."""
        below = unshell(value)
        if isinstance(below, Tensor) and below.record is not None:
            below = below.value if below.record.segment is self._segment else below
        return deliver(below, tensors=self.tensors) if isinstance(value, Tensor) else value

    def value(self, *, copy: bool = False) -> Any:
        """The result of the function; as a copy if the records it is part of live on."""
        taken = {id(argument) for argument in self._arguments}
        if copy:
            taken.update(id(self._plain(out)) for out in self.outs)
        return self.unflatten([own(self._plain(out), taken) for out in self.outs])

    def unflatten(self, leaves: list[Any]) -> Any:
        """Values, one per output, in the structure of the output."""
        return containers.unflatten(self._out_structure, leaves)

    def scalar(self, *, holomorphic: bool = False) -> Tensor | Any:
        """The only output, of one element: real, or complex if `holomorphic`."""
        if len(self.outs) != 1:
            raise ShapeError(
                f"{self._name}: the function returned {len(self.outs)} values, expected one "
                "scalar. Use has_aux=True for further results, or gt.jacobian"
            )
        out = self.outs[0]
        aval = aval_of(out)
        if math.prod(aval.shape) != 1:
            raise ShapeError(
                f"{self._name}: the function returned shape {aval.shape}, expected a scalar. "
                "Reduce it (np.sum), or use gt.jacobian or gt.vjp"
            )
        if holomorphic:
            check_complex(self._name, [*self._arguments, out])
        elif not is_differentiable(out) or aval.dtype.kind == "c":
            raise DTypeError(
                f"{self._name}: the function returned {aval.dtype}, expected a real floating "
                "scalar. Use holomorphic=True for a complex derivative, gt.vjp for complex results "
                "of other functions"
            )
        return out

    def pull(self, cotangents: Sequence[Any], *, last: bool = False) -> tuple[Any, ...]:
        """The cotangents of the chosen arguments, given one per output (None for zero).

        If it is the `last` time, what was recorded is freed on the way.
        """
        roots = []
        for out, ct in zip(self.outs, cotangents, strict=True):
            node = self._node(out)
            if node is not None and ct is not None:
                roots.append((node, unshell(ct)))
        found = walk(self._segment, roots, sources=self._nodes, last=last)
        return self.delivered(found, tensors=self.tensors or has_tensors(cotangents))

    def delivered(self, found: Mapping[Any, Any], *, tensors: bool) -> tuple[Any, ...]:
        """What a walk found, in the form of the arguments."""
        results = []
        for argument, node in zip(self._arguments, self._nodes, strict=True):
            ct = found.get(node)
            ct = lift(zeros_like(argument) if ct is None else ct, argument)
            results.append(deliver(like_argument(ct, argument), tensors=tensors))
        made = self.like_arguments(results)
        if self.traced:
            containers.note_gradients(made)
        return made

    def like_arguments(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Values, one per leaf of the chosen arguments, in the containers of these."""
        rest = iter(leaves)
        return tuple(
            containers.unflatten(structure, list(itertools.islice(rest, structure.num_leaves)))
            for structure in self._structures
        )

    def push(self, tangents: Sequence[Any]) -> Any:
        """The tangent of the output, given one for each leaf of the chosen arguments."""
        given: dict[Node, Any] = dict(zip(self._nodes, map(unshell, tangents), strict=True))
        found = iter(
            push(given, [node for node, _ in self.ends if node is not None], traced=self.traced)
        )
        taken = set(map(id, tangents))
        results = []
        for out, (node, _) in zip(self.outs, self.ends, strict=True):
            tangent = None if node is None else next(found)
            value = self._plain(out)
            tangent = zeros_like(value) if tangent is None else own(tangent, taken)
            tensors = self.tensors or has_tensors(tangents)
            results.append(deliver(lift(tangent, value), tensors=tensors))
        return self.unflatten(results)

    @property
    def starts(self) -> list[tuple[Leaf, Aval]]:
        """The nodes of the chosen arguments, with their shapes and dtypes."""
        return [(node, node.aval) for node in self._nodes]

    @property
    def ends(self) -> list[tuple[Node | None, Aval]]:
        """The nodes of the outputs, None for one that was not recorded, likewise."""
        return [(self._node(out), aval_of(out)) for out in self.outs]

    def _node(self, out: Any) -> Node | None:
        node = out.record if isinstance(out, Tensor) else None
        return node if node is not None and node.segment is self._segment else None

    @property
    def traced(self) -> bool:
        """Whether the function was run on values of a trace."""
        return any(map(is_traced, self.outs))

    def jacobian(self, config: SchedulerConfig, unit: complex = 1) -> tuple[list[Any], Schedule]:
        """For each output its Jacobian by each chosen argument, and how it was accumulated.

        Args:
            config: How to choose between the modes.
            unit: What to begin with: 1, or 1j to vary along the imaginary axis.
        """
        ends, taken = self.ends, set[int]()
        blocks, schedule = jacobian_blocks(
            self._segment, self.starts, ends, config, traced=self.traced, unit=unit
        )
        rows = []
        for t, (_, to) in enumerate(ends):
            row = []
            for s, argument in enumerate(self._arguments):
                of = self._nodes[s].aval
                block = blocks.get((t, s))
                block = (
                    np.zeros(to.shape + of.shape, of.dtype) if block is None else own(block, taken)
                )
                row.append(deliver(lift(block, argument), tensors=self.tensors))
            rows.append(self.like_arguments(row))
        return rows, schedule

    def seed(self, cotangent: Any) -> list[Any]:
        """A user's cotangent as one checked value per output."""
        leaves, structure = containers.flatten(cotangent)
        if structure != self._out_structure:
            raise ShapeError(
                f"vjp: the cotangent has structure {containers.outline(structure)}, expected that "
                f"of the output, {containers.outline(self._out_structure)}, where * is an array or "
                "a number"
            )
        return [
            checked(ct, out, "vjp", containers.Place("cotangent", cotangent, n), "output")
            for n, (ct, out) in enumerate(zip(leaves, self.outs, strict=True))
        ]


def record(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    argnums: Sequence[int],
    name: str,
    *,
    has_aux: bool = False,
) -> Pullback:
    """Run a function with the chosen arguments watched at a level of their own."""
    segment = Segment(next_level(), name, strict=True)
    full = list(args)
    arguments: list[Any] = []
    nodes: list[Leaf] = []
    structures = []
    for n in argnums:
        leaves, values, structure = as_primals(args[n], name, f"argument {n}")
        own_nodes = [Leaf(segment, value) for value in values]
        watched = [wrap(value, node) for value, node in zip(values, own_nodes, strict=True)]
        note_places(watched, leaves)
        full[n] = containers.unflatten(structure, watched)
        arguments += leaves
        nodes += own_nodes
        structures.append(structure)
    try:
        out = run(function, full, kwargs)
    finally:
        segment.active = False
    return Pullback(name, segment, arguments, nodes, structures, out, has_aux)


def output_and_aux(out: Any, name: str) -> tuple[Any, Any]:
    """The pair a function with `has_aux` returned."""
    if not isinstance(out, tuple) or len(out) != 2:
        raise ShapeError(
            f"{name}: the function returned {a_type(out)}, expected a pair (output, aux), as "
            "has_aux=True says"
        )
    return out


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Run a function and return the map from cotangents of its output to those of its arguments.

    Args:
        function: The function to differentiate.
        *primals: Its arguments: arrays, tensors, floats or nested containers of them.
        has_aux: Whether the function returns `(output, aux)`; `aux` is passed on as it is.

    Returns:
        `(output, pullback)`, with `aux` as third if asked for. `pullback(ct)` returns one
        cotangent per argument, as a tuple, and can be called any number of times.

    Raises:
        DTypeError: An argument is not floating or complex.

    >>> out, pullback = gt.vjp(lambda x: x * x, np.array([1.0, 2.0]))
    >>> pullback(np.ones(2))
    (array([2., 4.]),)
    """
    function = as_function(function, "vjp")
    run = record(function, primals, {}, range(len(primals)), "vjp", has_aux=has_aux)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        return run.pull(run.seed(cotangent))

    value = run.value(copy=True)
    return (value, pullback, run.aux) if has_aux else (value, pullback)


def value_and_grad(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the value and the gradient of a scalar function.

    Args:
        function: The function to differentiate; returns a scalar, or an array of one element.
        argnums: Which positional argument(s) to differentiate with respect to. One number gives
            one gradient, a sequence a tuple of them.
        has_aux: Whether the function returns `(value, aux)`.
        holomorphic: Whether the function is complex-differentiable; see `grad`.

    Returns:
        A function of the same arguments that returns `(value, gradient)`, or
        `((value, aux), gradient)` with `has_aux`.

    Raises:
        ArgumentError: It is not a function, or `argnums` are not positions of arguments.
        DTypeError: An argument to be differentiated is not floating or complex.
        ShapeError: The function did not return one number.

    >>> gt.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    return _transformed(value_and_grad, function, argnums, has_aux, holomorphic)


def _transformed(
    transform: Any, function: Any, argnums: Any, has_aux: bool, holomorphic: bool
) -> Transformed:
    """The function that `grad` or `value_and_grad` makes."""
    function, argnums = function_and_argnums(function, argnums, "grad")

    def evaluate(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        plain = not has_aux and not holomorphic
        if plain and type(argnums) is int and 0 <= argnums < len(args):
            x = args[argnums]
            if type(x) is ndarray and x.dtype.kind == "f":
                return _of_array(function, args, kwargs, argnums)
        chosen = selected(argnums, len(args), "grad")
        run = record(function, args, kwargs, chosen, "grad", has_aux=has_aux)
        return of_run(run, isinstance(argnums, int), has_aux, holomorphic)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, result = evaluate(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    options = {"has_aux": has_aux, "holomorphic": holomorphic}
    call = gradient if transform is grad else evaluate
    return Transformed(call, transform, (function, argnums), options)


def of_run(run: Pullback, single: bool, has_aux: bool, holomorphic: bool) -> tuple[Any, Any]:
    """Value and gradient of a recorded run."""
    out = run.scalar(holomorphic=holomorphic)
    one = ones_like(out)
    grads = run.pull([one], last=not holomorphic)
    if holomorphic:
        grads = holomorphic_only("grad", grads, run.pull([1j * one], last=True))
        grads = containers.map_leaves(conj, grads)
    return (run.value(), run.aux) if has_aux else run.value(), grads[0] if single else grads


def _of_array(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], n: int
) -> tuple[Any, Any]:
    """The common case without detours: one array to differentiate by, a scalar result."""
    segment = Segment(next_level(), "grad", strict=True)
    node = Leaf(segment, args[n])
    watched = Tensor(args[n], node)
    if not args[n].shape:
        note_places((watched,), (args[n],))
    try:
        out = run(function, (*args[:n], watched, *args[n + 1 :]), kwargs)
    finally:
        segment.active = False
    found = None
    if type(out) is Tensor and out.record is not None and out.record.segment is segment:
        value = out.value
        plain = type(value) is ndarray or isinstance(value, np.generic)
        if plain and value.shape == () and value.dtype.kind == "f":
            found = walk(segment, ((out.record, value.dtype.type(1)),), last=True)
            if type(found.get(node)) is ndarray:
                return value[()], found[node]
    pullback = Pullback("grad", segment, [args[n]], [node], [containers.SINGLE], out, False)
    if found is not None:
        return pullback.value(), pullback.delivered(found, tensors=False)[0]
    return of_run(pullback, single=True, has_aux=False, holomorphic=False)


def grad(
    function: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function.

    Args:
        function: The function to differentiate; returns a scalar, or an array of one element. Plain
            NumPy code will do.
        argnums: Which positional argument(s) to differentiate with respect to. One number gives
            one gradient, a sequence a tuple of them.
        has_aux: Whether the function returns `(value, aux)`; then `(gradient, aux)` is returned.
        holomorphic: Whether the function is complex-differentiable, from complex arguments to a
            complex scalar; the result is then its complex derivative. Otherwise the gradient by a
            complex argument is the direction of steepest ascent of a real function.

    Returns:
        A function of the same arguments that returns the gradient, in the form of the argument:
        arrays for arrays, tensors for tensors, nested containers for nested containers.

    Raises:
        ArgumentError: It is not a function, or `argnums` are not positions of arguments.
        DTypeError: An argument to be differentiated is not floating or complex.
        ShapeError: The function did not return one number.
        NotDifferentiableError: With `holomorphic`, the function is not holomorphic.

    >>> gt.grad(lambda x: np.sum(np.sin(x)))(np.zeros(2))
    array([1., 1.])
    >>> gt.grad(gt.grad(lambda x: x**3))(2.0)
    np.float64(12.0)
    >>> gt.grad(lambda z: z**2, holomorphic=True)(1 + 2j)
    np.complex128(2+4j)
    """
    return _transformed(grad, function, argnums, has_aux, holomorphic)


needed.fill(vjp=vjp)
