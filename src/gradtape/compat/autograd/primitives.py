"""Primitives: functions of users with rules of their own, in autograd's form.

A call becomes one op, as of a function made by `gt.custom_vjp`: its forward runs on arrays, its
rules on what they are given, so they can be differentiated again. Arguments without tensors are
part of the op.

autograd's cotangents are the complex conjugates of gradtape's.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape import containers
from gradtape.autodiff.custom_run import Run, frozen
from gradtape.autodiff.forward import zeros_like
from gradtape.autodiff.reverse import vjp
from gradtape.compat.autograd.util import subvals
from gradtape.compat.autograd.vspaces import SparseObject
from gradtape.compat.autograd.wrap_util import get_name, wraps
from gradtape.core.aval import aval_of, is_numeric
from gradtape.core.call import is_differentiable
from gradtape.core.op import Op
from gradtape.core.tensor import Tensor, as_value
from gradtape.dropin.held_tensors import holds_tensor
from gradtape.errors import (
    ConversionError,
    DTypeError,
    GradtapeError,
    MissingRuleError,
    NotDifferentiableError,
    UnsupportedError,
    WriteError,
    a_type,
)
from gradtape.ops.cast import conj, real
from gradtape.ops.shape import reshape

Function = Callable[..., Any]

# The rules of primitives: `maker(argnums, ans, args, kwargs)` returns the map from the cotangent
# of the result to those of these arguments; `pusher(argnums, gs, ans, args, kwargs)` returns the
# tangent of the result.
primitive_vjps: dict[Any, Function] = {}
primitive_jvps: dict[Any, Function] = {}
# For each class of nodes (`tracer.Node`) the primitives whose results it sees as constants.
notrace_primitives: defaultdict[type, set[Any]] = defaultdict(set)


def primitive(f_raw: Function) -> Function:
    """Make a function a primitive: it sees plain arrays, and its derivatives are given by rules.

    Rules are given by `defvjp` and `defjvp`. Where one of the two is missing, it follows from the
    other by transposition if that is written with functions that have derivatives.

    Args:
        f_raw: The function. Positional arguments are differentiated; keywords are constants.

    >>> from gradtape.compat.autograd import grad
    >>> from gradtape.compat.autograd.extend import defvjp, primitive
    >>> @primitive
    ... def cube(x):
    ...     return x**3
    >>> defvjp(cube, lambda ans, x: lambda g: 3 * x**2 * g)
    >>> grad(cube)(2.0), grad(grad(cube))(2.0)
    (np.float64(12.0), np.float64(12.0))
    """

    @wraps(f_raw)
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        held = [n for n, arg in enumerate(args) if holds_tensor(arg)]
        if not held:
            return f_raw(*args, **kwargs)
        return called(f_wrapped, args, kwargs, held)

    attributes: Any = f_wrapped
    attributes.fun = f_raw
    attributes._is_autograd_primitive = True
    return f_wrapped


def called(fun: Function, args: Sequence[Any], kwargs: dict[str, Any], held: Sequence[int]) -> Any:
    """Call a primitive some of whose arguments hold tensors."""
    leaves, static, structure = [args[n] for n in held], {}, None
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        leaves, structure = containers.flatten(tuple(leaves))
        leaves = [as_value(leaf) if holds_tensor(leaf) else leaf for leaf in leaves]
        static = {n: leaf for n, leaf in enumerate(leaves) if not isinstance(leaf, Tensor)}
    constants = subvals(args, [(n, None) for n in held])
    call = PrimitiveCall.at(Site(fun, constants, kwargs, tuple(held)), structure, static)
    return call.call([leaf for leaf in leaves if isinstance(leaf, Tensor)])


class Site(NamedTuple):
    """A primitive and its arguments but for those that hold tensors.

    Attributes:
        fun: The primitive.
        args: Its positional arguments; None in place of the others.
        kwargs: Its keyword arguments.
        held: The positions of the others.
    """

    fun: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    held: tuple[int, ...]

    def complete(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """All positional arguments, given the others."""
        return subvals(self.args, zip(self.held, values, strict=True))

    def run(self, *values: Any) -> Any:
        """The result of the function."""
        return self.fun.fun(*self.complete(values), **self.kwargs)

    def pull(self, ct: Any, out: Any, *values: Any, wanted: Any = None) -> tuple[Any, ...]:
        """Cotangents by the reverse rule; None for those that are not `wanted`."""
        places, argnums = self._chosen(wanted)
        maker = self._rule(primitive_vjps, "VJP", argnums)
        back = maker(argnums, out, self.complete(values), self.kwargs)
        found = dict(zip(places, back(conjugated(ct)), strict=True))
        return tuple(_cotangent(found.get(n), value) for n, value in enumerate(values))

    def push(self, tangents: Sequence[Any], out: Any, *values: Any, wanted: Any = None) -> Any:
        """The tangent of the result by the forward rule, of those that are `wanted`."""
        places, argnums = self._chosen(wanted)
        pusher = self._rule(primitive_jvps, "JVP", argnums)
        given = [tangents[n] for n in places]
        tangent = pusher(argnums, given, out, self.complete(values), self.kwargs)
        return tangent.dense() if isinstance(tangent, SparseObject) else tangent

    def _chosen(self, wanted: Any) -> tuple[list[int], tuple[int, ...]]:
        places = [n for n in range(len(self.held)) if wanted is None or wanted[n]]
        return places, tuple(self.held[n] for n in places)

    def _rule(self, rules: dict[Any, Function], kind: str, argnums: tuple[int, ...]) -> Function:
        if self.fun not in rules:
            name, which = get_name(self.fun), kind.lower()
            raise MissingRuleError(
                f"{kind} of {name} wrt argnums {argnums} not defined; add one: "
                f"def{which}({name}, ...)"
            )
        return rules[self.fun]


def conjugate(x: Any) -> Any:
    """The complex conjugate of a complex array, tensor or number; others as they are."""
    return conj(x) if aval_of(x).dtype.kind == "c" else x


def conjugated(value: Any) -> Any:
    """The complex conjugates of what is complex in nested containers."""
    if type(value) is np.ndarray:
        return conj(value) if value.dtype.kind == "c" else value
    return containers.map_leaves(conjugate, value)


def _cotangent(found: Any, value: Any) -> Any:
    """What a rule of autograd's form returned for an argument, as a cotangent of gradtape's."""
    if found is None:
        return None
    if isinstance(found, SparseObject):
        found = found.dense()
    leaves, structure = containers.flatten(found)
    likes = containers.flatten(value)[0]
    if len(leaves) == len(likes):  # otherwise, the error says what is wrong
        leaves = [_like(leaf, like) for leaf, like in zip(leaves, likes, strict=True)]
    return containers.unflatten(structure, leaves)


def _like(ct: Any, value: Any) -> Any:
    """A cotangent with the shape of a value of one element, real for a real one."""
    if isinstance(value, str) or not hasattr(value, "shape"):
        return ct
    aval, expected = aval_of(ct), aval_of(value)
    if aval.dtype.kind == "c":
        ct = conj(ct) if expected.dtype.kind == "c" else real(ct)
    if aval.shape != expected.shape and math.prod(aval.shape) == math.prod(expected.shape) == 1:
        return reshape(ct, expected.shape)
    return ct


def _without_integers(tangents: Any, outs: Any) -> Any:
    """What a forward rule returned, but for results of integers: they have no tangent."""
    values, structure = containers.flatten(outs)
    if all(map(is_differentiable, values)):
        return tangents
    try:
        leaves = containers.aligned(tangents, outs)
    except ValueError:
        return tangents  # for the error that says which structure was expected
    kept = zip(leaves, values, strict=True)
    return containers.unflatten(structure, [x if is_differentiable(y) else None for x, y in kept])


class PrimitiveCall(Run):
    """One call of a primitive, as an op.

    Attributes:
        site: The primitive, and its arguments without tensors; None for a batch of calls.
        structure: The containers of the other arguments; None if these are tensors.
    """

    site: Site | None = None
    structure: Any

    @classmethod
    def at(
        cls, site: Site, structure: containers.Structure | None, static: dict[int, Any]
    ) -> PrimitiveCall:
        """The call of a primitive, given the containers of the other arguments."""
        pulls, pushes = site.fun in primitive_vjps, site.fun in primitive_jvps
        made = cls(
            get_name(site.fun),
            site.run,
            site.pull if pulls or not pushes else None,
            site.push if pushes else None,
            structure,
            static,
        )
        made.site = site
        return made

    def _placed(self, leaves: Sequence[Any], static: dict[int, Any]) -> Any:
        return tuple(leaves) if self.structure is None else super()._placed(leaves, static)

    def _checked(self, returned: Any, inputs: Sequence[Any]) -> list[Any]:
        if self.structure is not None or type(returned) is not tuple:
            return super()._checked(returned, inputs)
        return [
            self._leaves(ct, value, "vjp rule returned a cotangent", "argument")[0]
            for ct, value in zip(returned, inputs, strict=True)
        ]

    def _evaluate(self, xp: Any, *leaves: Any) -> Any:
        try:
            outs = super()._evaluate(xp, *leaves)
        except ValueError as error:
            if isinstance(error, GradtapeError) or "read-only" not in str(error):
                raise
            raise WriteError(
                f"{self.name}: the primitive writes to an argument, or hands it to compiled code "
                "that may, but arguments are read-only; copy it first: x = np.array(x)"
            ) from error
        for out in outs:
            if not is_numeric(out.dtype):
                raise DTypeError(
                    f"{self.name}: the primitive returned {a_type(out.tolist())}, expected arrays, "
                    "numbers or containers of them; use notrace_primitive for what has no "
                    "derivative"
                )
        return tuple(out if out.ndim else out[()] for out in outs)

    def _pull(self, wanted: Any, ct: Any, out: Any, *inputs: Any) -> list[Any]:
        if self.vjp_rule is None:
            return self._transposed_push(ct, out, inputs)
        rule = self._restricted(self.vjp_rule, wanted)
        outs, args = self._outs(frozen(out)), self._args(frozen(inputs))
        returned = rule(self._outs(frozen(ct)), outs, *args)
        # A rule may return anything; results of the walk share memory with nothing.
        return [
            np.array(ct) if isinstance(ct, np.ndarray | float | int) else ct
            for ct in self._checked(returned, inputs)
        ]

    def _transposed_push(self, ct: Any, out: Any, inputs: Sequence[Any]) -> list[Any]:
        """Cotangents by the forward rule."""
        try:
            return self._transposed(ct, out, inputs)
        except MissingRuleError:
            raise
        except (ConversionError, NotDifferentiableError) as error:
            raise MissingRuleError(
                f"VJP of {self.name} not defined, and its forward-mode rule cannot be transposed, "
                "as it computes with plain arrays or calls the primitive itself; add one: "
                f"defvjp({self.name}, ...)"
            ) from error

    def _restricted(self, rule: Function, wanted: Sequence[bool]) -> Function:
        """A rule that is only asked for the derivatives by those operands that are wanted."""
        if self.site is None:
            return rule
        placed = self._placed(wanted, dict.fromkeys(self.static, False))
        return functools.partial(rule, wanted=[any(containers.flatten(arg)[0]) for arg in placed])

    def _push(self, tangents: Sequence[Any], out: Any, *inputs: Any) -> Any:
        wanted = [tangent is not None for tangent in tangents]
        rule = self.jvp_rule
        if rule is None:
            return self._transposed_pull(wanted, tangents, out, inputs)
        filled = [
            zeros_like(value) if tangent is None else tangent
            for tangent, value in zip(tangents, inputs, strict=True)
        ]
        outs, args = self._outs(frozen(out)), self._args(frozen(inputs))
        given = self._placed(frozen(filled), dict.fromkeys(self.static))
        result = self._restricted(rule, wanted)(given, outs, *args)
        result = _without_integers(result, outs)
        parts = self._leaves(result, outs, "jvp rule returned a tangent", "output")
        return tuple(np.asarray(part) if isinstance(part, float | int) else part for part in parts)

    def _transposed_pull(
        self, wanted: list[bool], tangents: Sequence[Any], out: Any, inputs: Sequence[Any]
    ) -> Any:
        """Tangents by the reverse rule: it is linear in the cotangent, so transpose it."""
        varied = list(itertools.compress(range(len(inputs)), wanted))
        moving = [n for n, value in enumerate(out) if is_differentiable(value)]

        def pull(*some: Any) -> Any:
            known = dict(zip(moving, some, strict=True))
            cts = [known[n] if n in known else zeros_like(out[n]) for n in range(len(out))]
            pulled = self._pull(wanted, cts, out, *inputs)
            return tuple(zeros_like(inputs[n]) if pulled[n] is None else pulled[n] for n in varied)

        try:
            _, back = vjp(pull, *(zeros_like(out[n]) for n in moving))
        except ConversionError as error:
            raise MissingRuleError(
                f"{self.name}: has no forward-mode rule, and its reverse-mode rule cannot be "
                "transposed, as it computes with plain arrays; add one: "
                f"defjvp({self.name}, ...)"
            ) from error
        pushed = dict(zip(moving, back(tuple(tangents[n] for n in varied)), strict=True))
        return tuple(pushed.get(n) for n in range(len(out)))

    def _batched(self, axes: Sequence[Any], _args: Any) -> Run:
        in_axes = tuple(self._placed(axes, dict.fromkeys(self.static)))
        function = self._mapped(self.function, in_axes)
        rules = self._batched_rules(in_axes)
        return PrimitiveCall(self.name, function, *rules, self.structure, self.static)

    def _mapped(self, function: Function, in_axes: tuple[Any, ...]) -> Function:
        at_once = super()._mapped(function, in_axes)

        def mapped(*args: Any) -> Any:
            try:
                return at_once(*args)
            except ConversionError:  # it computes with plain arrays
                if holds_tensor(args):
                    raise
            return _one_by_one(function, args, containers.broadcast_prefix(in_axes, args))

        return mapped


def _one_by_one(function: Function, args: tuple[Any, ...], axes: Sequence[int | None]) -> Any:
    """A function on every element of a batch of arrays, and what it returned in one array each."""
    leaves, structure = containers.flatten(args)
    along = list(zip(leaves, axes, strict=True))
    size = next(leaf.shape[axis] for leaf, axis in along if axis is not None)
    if not size:
        raise UnsupportedError("vmap: got an empty batch of a primitive that takes no tensors")
    outs = []
    for n in range(size):
        element = [leaf if axis is None else np.take(leaf, n, axis) for leaf, axis in along]
        leaves, out_structure = containers.flatten(
            function(*containers.unflatten(structure, element))
        )
        outs.append(leaves)
    return containers.unflatten(
        out_structure, [np.stack(parts) for parts in zip(*outs, strict=True)]
    )


def primitive_of(op: Op) -> Function | None:
    """The primitive that an op is a call of, if it is one."""
    run = getattr(op.evaluate, "__self__", None)
    return run.site.fun if isinstance(run, PrimitiveCall) and run.site else None
