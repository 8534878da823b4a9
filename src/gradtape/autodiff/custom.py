"""Functions with their own derivative rules: `custom_vjp`, `custom_jvp`.

A call of such a function is one op of its own, recorded like a built-in one: its forward runs on
raw arrays, its rules on whatever they are given, so that they can be differentiated again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import tree
from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.forward import zeros_like
from gradtape.autodiff.reverse import vjp
from gradtape.autodiff.transforms import vmap
from gradtape.core.aval import aval_of
from gradtape.core.call import call, is_differentiable
from gradtape.core.define import functions
from gradtape.core.lowering import Composite
from gradtape.core.nested import unshell
from gradtape.core.op import NotDifferentiable, Op
from gradtape.core.tensor import Tensor, read_only
from gradtape.errors import GradtapeError, NotDifferentiableError, ShapeError

Rule = Callable[..., Any]


class CustomFunction:
    """A function whose derivatives are given by rules; made by `custom_vjp` or `custom_jvp`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._vjp: Rule | None = None
        self._jvp: Rule | None = None
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """What errors call it."""
        return getattr(self._function, "__name__", "custom function")

    def defvjp(self, rule: Rule) -> Rule:
        """Set the reverse-mode rule `rule(ct, out, *args)`: one cotangent per argument."""
        self._vjp = rule
        return rule

    def defjvp(self, rule: Rule) -> Rule:
        """Set the forward-mode rule `rule(tangents, out, *args)`: the tangent of the output."""
        self._jvp = rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten(args)
        run = _Run(self.name, self._function, self._vjp, self._jvp, structure, kwargs)
        return run.call(leaves)


class _Run:
    """One call: the op made for it, and the containers that arguments and results come in."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        vjp_rule: Rule | None,
        jvp_rule: Rule | None,
        structure: tree.Structure,
        kwargs: dict[str, Any],
    ) -> None:
        self.name = name
        self.function = functools.partial(function, **kwargs)
        self.vjp_rule = vjp_rule
        self.jvp_rule = jvp_rule
        self.structure = structure
        self.out_structure: tree.Structure | None = None

    def run(self, leaves: Sequence[Any]) -> Any:
        """Run it as an op; the containers of the result are known afterwards."""
        rule: Rule = self._pull
        if self.vjp_rule is None and self.jvp_rule is None:
            rule = NotDifferentiable(f"{self.name}: has no rule; add one with @{self.name}.defvjp")
        # The op refers to this object and not the other way round: no cycle for the collector.
        op = Op(
            name=self.name,
            evaluate=self._evaluate,
            infer=self._infer,
            vjp_all=rule,
            jvp=self._push,
            batch=self._batch,
            kind="custom",
            outputs=None,
            lower=Composite(self._composed),
        )
        return call(op, leaves, {})

    def call(self, leaves: Sequence[Any]) -> Any:
        """Run it as an op, and put the results into their containers."""
        out = self.run(leaves)
        assert self.out_structure is not None
        return tree.unflatten(self.out_structure, list(out))

    def _args(self, leaves: Sequence[Any]) -> Any:
        return tree.unflatten(self.structure, list(leaves))

    def _outs(self, leaves: Any) -> Any:
        assert self.out_structure is not None
        return tree.unflatten(self.out_structure, list(leaves))

    def _composed(self, *leaves: Any) -> Any:
        """What the function does, on tensors that are traced."""
        outs, self.out_structure = tree.flatten(self.function(*self._args(leaves)))
        return tuple(outs)

    def _evaluate(self, _xp: Any, *leaves: Any) -> Any:
        # Read-only: a function or rule that writes into its arguments would change the user's.
        result = self.function(*self._args(_frozen(leaves)))
        outs, self.out_structure = tree.flatten(result)
        outs = [unshell(out) for out in outs]
        if any(isinstance(out, Tensor) for out in outs):
            raise GradtapeError(
                f"{self.name}: the function uses a recorded tensor that is not an argument, whose "
                "gradient the rule cannot give; pass it as an argument, or detach() it"
            )
        return tuple(
            np.array(out) if isinstance(out, np.ndarray) else np.asarray(out) for out in outs
        )

    def _infer(self, *avals: Any) -> Any:
        outs = self._evaluate(np, *(np.zeros(aval.shape, aval.dtype) for aval in avals))
        return tuple(aval_of(out) for out in outs)

    def _pull(self, _wanted: Any, ct: Any, out: Any, *inputs: Any) -> list[Any]:
        """The cotangents of all inputs."""
        if self.vjp_rule is None:
            return list(self._transposed(ct, out, inputs))
        outs, args = self._outs(_frozen(out)), self._args(_frozen(inputs))
        returned = self.vjp_rule(self._outs(_frozen(ct)), outs, *args)
        # A rule may return anything; results of the walk share memory with nothing.
        return [
            np.array(ct) if isinstance(ct, np.ndarray | float | int) else ct
            for ct in self._checked(returned, inputs)
        ]

    def _checked(self, returned: Any, inputs: Sequence[Any]) -> list[Any]:
        """What a rule returned, as one cotangent per input; None stands for zero."""
        args = self._args(inputs)
        if not isinstance(returned, tuple) or len(returned) != len(args):
            raise ShapeError(
                f"{self.name}: the vjp rule returned {_described(returned)}; needed a tuple of "
                f"{len(args)}, one cotangent per argument"
            )
        cts: list[Any] = []
        for ct, arg in zip(returned, args, strict=True):
            leaves, structure = tree.flatten(arg)
            parts, own = ([None] * len(leaves), structure) if ct is None else tree.flatten(ct)
            if own != structure:
                raise ShapeError(
                    f"{self.name}: the vjp rule returned a cotangent of structure {own}; needed "
                    f"{structure}, as the argument has"
                )
            cts += parts
        for ct, value in zip(cts, inputs, strict=True):
            if ct is not None:
                self._check_shape(ct, value, "vjp rule returned a cotangent", "argument")
        return cts

    def _check_shape(self, derivative: Any, value: Any, what: str, of: str) -> None:
        came, needed = aval_of(derivative).shape, aval_of(value).shape
        if came != needed:
            raise ShapeError(
                f"{self.name}: the {what} of shape {came}; needed {needed}, as the {of} has"
            )

    def _transposed(self, ct: Any, out: Any, inputs: Sequence[Any]) -> Any:
        """Cotangents from the forward rule: it is linear in the tangents, so transpose it."""
        varied = [i for i, value in enumerate(inputs) if is_differentiable(value)]

        def push(*some: Any) -> Any:
            tangents: list[Any] = [None] * len(inputs)
            for i, tangent in zip(varied, some, strict=True):
                tangents[i] = tangent
            return self._push(tangents, out, *inputs)

        _, pullback = vjp(push, *(zeros_like(inputs[i]) for i in varied))
        cts: list[Any] = [None] * len(inputs)
        for i, part in zip(varied, pullback(ct), strict=True):
            cts[i] = part
        return cts

    def _push(self, tangents: Sequence[Any], out: Any, *inputs: Any) -> Any:
        if self.jvp_rule is None:
            raise NotDifferentiableError(
                f"{self.name}: has no forward-mode rule; add one with @{self.name}.defjvp"
            )
        filled = [
            zeros_like(value) if tangent is None else tangent
            for tangent, value in zip(tangents, inputs, strict=True)
        ]
        outs, args = self._outs(_frozen(out)), self._args(_frozen(inputs))
        result = self.jvp_rule(self._args(_frozen(filled)), outs, *args)
        pushed = [
            np.asarray(part) if isinstance(part, float | int) else part
            for part in tree.flatten(result)[0]
        ]
        if len(pushed) != len(out):
            raise ShapeError(
                f"{self.name}: the jvp rule returned {len(pushed)} tangents; needed {len(out)}, "
                "one per output"
            )
        for tangent, value in zip(pushed, out, strict=True):
            self._check_shape(tangent, value, "jvp rule returned a tangent", "output")
        return tuple(pushed)

    def _batch(self, _op: Op, axes: Sequence[Any], args: Any, _params: Any) -> Any:
        """The same function, and the same rules, on every element of the batch."""
        in_axes = tree.unflatten(self.structure, list(axes))

        def vjp_rule(ct: Any, out: Any, *inputs: Any) -> Any:
            assert self.vjp_rule is not None
            cts = vmap(self.vjp_rule, in_axes=(0, 0, *in_axes))(ct, out, *inputs)
            return tuple(map(_per_argument, cts, in_axes))

        def jvp_rule(tangents: Any, out: Any, *inputs: Any) -> Any:
            assert self.jvp_rule is not None
            return vmap(self.jvp_rule, in_axes=(tuple(in_axes), 0, *in_axes))(
                tangents, out, *inputs
            )

        batched = _Run(
            self.name,
            vmap(self.function, in_axes=tuple(in_axes)),
            None if self.vjp_rule is None else vjp_rule,
            None if self.jvp_rule is None else jvp_rule,
            self.structure,
            {},
        )
        out = batched.run(args)
        self.out_structure = batched.out_structure
        return out, (0,) * len(out)


def _per_argument(ct: Any, axes: Any) -> Any:
    """A batch of cotangents of one argument: summed where it is the same for the whole batch."""
    if ct is None:
        return None
    leaves, structure = tree.flatten(ct)
    placed = [
        functions["sum"](leaf, axis=0) if axis is None else functions["moveaxis"](leaf, 0, axis)
        for leaf, axis in zip(leaves, tree.broadcast_prefix(axes, ct), strict=True)
    ]
    return tree.unflatten(structure, placed)


def _is_foreign(value: Any) -> bool:
    """Whether a value is an array of another module than NumPy."""
    return hasattr(value, "dtype") and not isinstance(value, np.ndarray)


def _frozen(values: Sequence[Any]) -> list[Any]:
    """Values of which the arrays refuse writes."""
    return [read_only(value) if isinstance(value, np.ndarray) else value for value in values]


def _described(value: Any) -> str:
    return f"{len(value)} values" if isinstance(value, tuple) else f"a {type(value).__name__}"


def custom_vjp(function: Callable[..., Any]) -> CustomFunction:
    """Give a function its own reverse-mode rule, set with `@function.defvjp`.

    The rule `rule(ct, out, *args)` returns a tuple with one cotangent per positional argument
    (None for zero). Keyword arguments are constants. A forward-mode rule can be added with
    `@function.defjvp`; without it, forward mode through the function raises.

    >>> @gt.custom_vjp
    ... def clipped(x):
    ...     return gt.clip(x, -1.0, 1.0)
    >>> @clipped.defvjp
    ... def straight_through(ct, out, x):
    ...     return (ct,)
    >>> gt.grad(clipped)(3.0)
    np.float64(1.0)
    """
    return CustomFunction(as_function(function, "custom_vjp"))


def custom_jvp(function: Callable[..., Any]) -> CustomFunction:
    """Give a function its own forward-mode rule, set with `@function.defjvp`.

    The rule `rule(tangents, out, *args)` returns the tangent of the output and is linear in the
    tangents, so that reverse mode follows from it by transposition.

    >>> @gt.custom_jvp
    ... def cube(x):
    ...     return x**3
    >>> @cube.defjvp
    ... def rule(tangents, out, x):
    ...     return 3 * x**2 * tangents[0]
    >>> gt.grad(cube)(2.0)
    np.float64(12.0)
    """
    return CustomFunction(as_function(function, "custom_jvp"))
