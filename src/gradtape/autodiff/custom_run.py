"""Calls of functions with their own derivative rules.

Each is an op of its own, recorded like a built-in one: its forward runs on raw arrays, its rules
on whatever they are given, so that they can be differentiated again. Arguments that are not arrays
are part of the op.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.forward import zeros_like
from gradtape.autodiff.reverse import vjp
from gradtape.autodiff.transforms import vmap
from gradtape.backends import is_raw
from gradtape.class_fields import has_fields
from gradtape.core.aval import aval_of
from gradtape.core.call import call, is_differentiable
from gradtape.core.lowering import Composite
from gradtape.core.nested import unshell
from gradtape.core.op import NO_FACTS, Facts, NotDifferentiable, Op
from gradtape.core.state import current, run_inside, transposing
from gradtape.core.tensor import Tensor, read_only
from gradtape.errors import DTypeError, GradtapeError, NotDifferentiableError, ShapeError, a_type
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import moveaxis

Rule = Callable[..., Any]
UNSURE = (
    "is a function of yours, which nobody can see into: it may draw random numbers, or read a "
    "clock; if it always does the same with the same arguments, say so by deterministic=True"
)
# So many calls of a function with the same shapes may be transposed one inside of the other.
_MOST_NESTED = 8


class Run:
    """One call: the op made for it, and the containers that arguments and results come in.

    Attributes:
        kind: The kind of the op.
        effect: The effect of the op.
        unsure: Why it may give other results in another run; None if it is said to be the same.
    """

    kind = "custom"
    effect: str | None = None
    unsure: str | None = None

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        vjp_rule: Rule | None,
        jvp_rule: Rule | None,
        structure: containers.Structure,
        static: dict[int, Any],
    ) -> None:
        self.name, self.function, self.structure = name, function, structure
        self.vjp_rule, self.jvp_rule = vjp_rule, jvp_rule
        # Leaves that are not operands of the op, by position among the leaves.
        self.static = static
        self.out_structure: containers.Structure | None = None
        # The calls whose forward rules made this one, as far as they are being transposed.
        self._within = current().transposing

    def run(self, leaves: Sequence[Any]) -> Any:
        """Run it as an op; the containers of the result are known afterwards."""
        rule: Rule = self._pull
        if self.vjp_rule is None and self.jvp_rule is None:
            rule = NotDifferentiable(f"{self.name}: has no rule; {self._advice('vjp')}")
        # The op refers to this object, not the other way round, so there is no reference cycle.
        op = Op(
            name=self.name,
            evaluate=self._evaluate,
            infer=self._infer,
            vjp_all=rule,
            jvp=self._push,
            batch=self._batch,
            kind=self.kind,
            outputs=None,
            effect=self.effect,
            unsure=self.unsure,
            facts=self._facts(),
            lower=self._lowering(),
            identity=self._identity(),
        )
        return call(op, leaves, {})

    def _advice(self, which: str) -> str:
        """How to give it a rule, for errors."""
        return f"add one with @{self.name}.def{which}"

    def _lowering(self) -> Composite | None:
        return Composite(self._composed)

    def _facts(self) -> Facts:
        return NO_FACTS

    def _identity(self) -> tuple[Any, ...]:
        """What tells it from other functions of its name. The op holds the objects of these ids."""
        held = [*_parts(self.function), *_parts(self.vjp_rule), *_parts(self.jvp_rule)]
        fixed = [
            (n, repr(value) if type(value) in (int, str, bool) else id(value))
            for n, value in self.static.items()
        ]
        return *map(id, held), *fixed

    def call(self, leaves: Sequence[Any]) -> Any:
        """Run it as an op, and put the results into their containers."""
        return self._outs(self.run(leaves))

    def _args(self, leaves: Sequence[Any]) -> Any:
        return self._placed(leaves, self.static)

    def _placed(self, leaves: Sequence[Any], static: dict[int, Any]) -> Any:
        """Values, one per operand, put in place of the arguments, together with the static ones."""
        rest = iter(leaves)
        count = len(leaves) + len(static)
        full = [static[n] if n in static else next(rest) for n in range(count)]
        return containers.unflatten(self.structure, full)

    def _outs(self, leaves: Any) -> Any:
        assert self.out_structure is not None
        return containers.unflatten(self.out_structure, list(leaves))

    def _composed(self, *leaves: Any) -> Any:
        """Run the function on traced tensors."""
        outs, self.out_structure = containers.flatten(self.function(*self._args(leaves)))
        return tuple(outs)

    def _evaluate(self, _xp: Any, *leaves: Any) -> Any:
        # Read-only: a function or rule that writes into its arguments would change users' arrays.
        result = self.function(*self._args(frozen(leaves)))
        outs, self.out_structure = containers.flatten(result)
        outs = [unshell(out) for out in outs]
        if any(isinstance(out, Tensor) for out in outs):
            raise GradtapeError(
                f"{self.name}: the function uses a recorded tensor that is not an argument, whose "
                "gradient the rule cannot give; pass it as an argument, by position, or detach() it"
            )
        return tuple(map(np.array, outs))

    def _infer(self, *avals: Any) -> Any:
        outs = self._evaluate(np, *(np.zeros(aval.shape, aval.dtype) for aval in avals))
        return tuple(aval_of(out) for out in outs)

    def _pull(self, _wanted: Any, ct: Any, out: Any, *inputs: Any) -> list[Any]:
        """The cotangents of all inputs."""
        if self.vjp_rule is None:
            return self._transposed(ct, out, inputs)
        outs, args = self._outs(frozen(out)), self._args(frozen(inputs))
        returned = self.vjp_rule(self._outs(frozen(ct)), outs, *args)
        # A rule may return anything; results of the walk share memory with nothing.
        return [
            np.array(ct) if isinstance(ct, np.ndarray | float | int) else ct
            for ct in self._checked(returned, inputs)
        ]

    def _checked(self, returned: Any, inputs: Sequence[Any]) -> list[Any]:
        """The result of a rule as one cotangent per input; None stands for zero."""
        args = self._args(inputs)
        cts: list[Any] = []
        for ct, arg in zip(self._per_argument(returned, args), args, strict=True):
            cts += self._leaves(ct, arg, "vjp rule returned a cotangent", "argument")
        for n, value in self.static.items():
            if cts[n] is not None and is_object(value):
                raise DTypeError(
                    f"{self.name}: the vjp rule returned a cotangent for {a_type(value)}, "
                    "which has no derivative, expected None in its place"
                )
        return [ct for n, ct in enumerate(cts) if n not in self.static]

    def _per_argument(self, returned: Any, args: Sequence[Any]) -> Any:
        """One cotangent per argument.

        Those of static arguments may have been left out, and parameters of the rule that are not
        arguments of this call, such as keywords and defaults, may have been given a None.
        """
        fixed = [_is_fixed(arg) for arg in args]
        if isinstance(returned, tuple):
            while len(returned) > len(args) and returned[-1] is None:
                returned = returned[:-1]
            if len(returned) == len(args):
                return returned
            if len(returned) == fixed.count(False):
                rest = iter(returned)
                return [None if static else next(rest) for static in fixed]
        got = f"{len(returned)} values" if isinstance(returned, tuple) else a_type(returned)
        raise ShapeError(
            f"{self.name}: the vjp rule returned {got}, expected a tuple of "
            f"{len(args)}, one cotangent per argument"
            + (f", or of {fixed.count(False)}, without those that are static" if any(fixed) else "")
        )

    def _leaves(self, returned: Any, like: Any, what: str, of: str) -> list[Any]:
        """The leaves of what a rule returned, with the structure and shapes of a container."""
        values, structure = containers.flatten(like)
        try:
            leaves = containers.aligned(returned, like)
        except ValueError:
            got, expected = containers.flatten(returned)[1], containers.outline(structure)
            raise ShapeError(
                f"{self.name}: the {what} of structure {containers.outline(got)}, expected that of "
                f"the {of}, {expected}, where * is an array or a number"
            ) from None
        for leaf, value in zip(leaves, values, strict=True):
            if leaf is None or is_static(value):
                continue
            if (got := aval_of(leaf).shape) != (shape := aval_of(value).shape):
                raise ShapeError(
                    f"{self.name}: the {what} of shape {got}, expected {shape}, the shape of the "
                    f"{of}"
                )
        return leaves

    def _transposed(self, ct: Any, out: Any, inputs: Sequence[Any]) -> list[Any]:
        """Cotangents from the forward rule: it is linear in the tangents, so transpose it."""
        call = (self.name, tuple(map(aval_of, inputs)))
        if self._within.count(call) == _MOST_NESTED:
            raise NotDifferentiableError(
                f"{self.name}: has no reverse mode, as its forward-mode rule calls the function "
                f"itself with tangents, over and over; {self._advice('vjp')}"
            )
        varied = [i for i, value in enumerate(inputs) if is_differentiable(value)]
        moving = [i for i, value in enumerate(out) if is_differentiable(value)]

        def of_inputs(some: Sequence[Any]) -> list[Any]:
            known = dict(zip(varied, some, strict=True))
            return [known.get(i) for i in range(len(inputs))]

        def push(*some: Any) -> Any:
            pushed = self._push(of_inputs(some), out, *inputs)
            return tuple(zeros_like(out[i]) if pushed[i] is None else pushed[i] for i in moving)

        zeros = [zeros_like(inputs[i]) for i in varied]
        _, pullback = run_inside(transposing((*self._within, call)), vjp, push, *zeros)
        return of_inputs(pullback(tuple(ct[i] for i in moving)))

    def _push(self, tangents: Sequence[Any], out: Any, *inputs: Any) -> Any:
        if self.jvp_rule is None:
            raise NotDifferentiableError(
                f"{self.name}: has no forward-mode rule; {self._advice('jvp')}"
            )
        filled = [
            zeros_like(value) if tangent is None else tangent
            for tangent, value in zip(tangents, inputs, strict=True)
        ]
        outs, args = self._outs(frozen(out)), self._args(frozen(inputs))
        fixed = {n: None if is_object(value) else 0 for n, value in self.static.items()}
        result = self.jvp_rule(self._placed(frozen(filled), fixed), outs, *args)
        parts = self._leaves(result, outs, "jvp rule returned a tangent", "output")
        return tuple(np.asarray(part) if isinstance(part, float | int) else part for part in parts)

    def _batch(self, _op: Op, axes: Sequence[Any], args: Any, _params: Any) -> Any:
        """The same function, and the same rules, on every element of the batch."""
        batched = self._batched(axes, args)
        batched.unsure = self.unsure
        out = batched.run(args)
        self.out_structure = batched.out_structure
        return out, (0,) * len(out)

    def _batched(self, axes: Sequence[Any], _args: Any) -> Run:
        """The call for a batch, which is along an axis of each argument, or None."""
        in_axes = tuple(self._placed(axes, dict.fromkeys(self.static)))
        function = self._mapped(self.function, in_axes)
        rules = self._batched_rules(in_axes)
        return Run(self.name, function, *rules, self.structure, self.static)

    def _mapped(self, function: Callable[..., Any], in_axes: tuple[Any, ...]) -> Callable[..., Any]:
        """The function or a rule, on every element of a batch."""
        return vmap(function, in_axes=in_axes)

    def _batched_rules(self, in_axes: tuple[Any, ...]) -> tuple[Rule | None, Rule | None]:
        """The rules on every element of a batch; those of results are along the first axis."""

        def per_element(ct: Any, out: Any, *inputs: Any) -> Any:
            assert self.vjp_rule is not None
            return tuple(self._per_argument(self.vjp_rule(ct, out, *inputs), inputs))

        def vjp_rule(ct: Any, out: Any, *inputs: Any) -> Any:
            cts = self._mapped(per_element, (0, 0, *in_axes))(ct, out, *inputs)
            return tuple(map(batch_of_cotangents, cts, in_axes))

        def jvp_rule(tangents: Any, out: Any, *inputs: Any) -> Any:
            assert self.jvp_rule is not None
            mapped = self._mapped(self.jvp_rule, (in_axes, 0, *in_axes))
            return mapped(tangents, out, *inputs)

        return self.vjp_rule and vjp_rule, self.jvp_rule and jvp_rule


def _is_fixed(arg: Any) -> bool:
    """Whether an argument is an object without derivatives, such as a configuration.

    Fields of such an object may be Python numbers; differentiated ones are NumPy's.
    """
    leaves, structure = containers.flatten(arg)
    if structure is containers.SINGLE:
        return is_object(arg)
    numbers = (float, int, bool, complex)
    return has_fields(type(arg)) and all(type(x) in numbers or is_object(x) for x in leaves)


def _parts(function: Any) -> tuple[Any, ...]:
    """What a function is known by: a method is another object each time it is asked for."""
    if inspect.ismethod(function):
        return function.__func__, function.__self__
    return (function,)


def batch_of_cotangents(ct: Any, axes: Any) -> Any:
    """A batch of cotangents of one argument: summed where it is the same for the whole batch."""
    if ct is None:
        return None
    leaves, structure = containers.flatten(ct)
    placed = [
        sum_of(leaf, axis=0) if axis is None else moveaxis(leaf, 0, axis)
        for leaf, axis in zip(leaves, containers.broadcast_prefix(axes, ct), strict=True)
    ]
    return containers.unflatten(structure, placed)


def is_static(leaf: Any) -> bool:
    """Whether an argument is part of the op: Python integers, and anything that is not a number.

    Integers are mostly sizes and powers, which have to be known in a trace.
    """
    return isinstance(leaf, int) or is_object(leaf)


def is_object(leaf: Any) -> bool:
    """Whether an argument is neither an array nor a number: a function, a string, an instance."""
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.dtype.kind in "OSUMm"
    return not (isinstance(leaf, Tensor) or is_raw(leaf))


def frozen(values: Sequence[Any]) -> list[Any]:
    """The values, with read-only arrays."""
    return [read_only(value) if isinstance(value, np.ndarray) else value for value in values]
