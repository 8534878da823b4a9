"""Functions with their own derivative rules: `custom_vjp`, `custom_jvp`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, overload

from gradtape import containers
from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.custom_run import UNSURE, Rule, Run, is_static
from gradtape.core.portable import Portable, bound
from gradtape.core.state import checked_flag
from gradtape.errors import UnknownSizeError

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# The number of parameters of a rule before the arguments: the derivative and the result.
_BEFORE = 2


class CustomFunction(Portable):
    """A function whose derivatives are given by rules; made by `custom_vjp` or `custom_jvp`."""

    def __init__(
        self,
        function: Callable[..., Any],
        vjp: Rule | None = None,
        jvp: Rule | None = None,
        deterministic: bool = False,
    ) -> None:
        self._function, self._deterministic = function, deterministic
        self._vjp, self._jvp = vjp and _as_rule(vjp, "defvjp"), jvp and _as_rule(jvp, "defjvp")
        # The rules as they were given.
        self._given = [vjp, jvp]
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """Its name in errors."""
        return getattr(self._function, "__name__", "custom function")

    def defvjp(self, rule: Rule) -> Rule:
        """Set the reverse-mode rule `rule(ct, out, *args)`: one cotangent per argument.

        The rule of a method may be a method itself: `rule(self, ct, out, *args)`.
        """
        self._vjp, self._given[0] = _as_rule(rule, "defvjp"), rule
        return rule

    def defjvp(self, rule: Rule) -> Rule:
        """Set the forward-mode rule `rule(tangents, out, *args)`: the tangent of the output.

        The rule of a method may be a method itself: `rule(self, tangents, out, *args)`.
        """
        self._jvp, self._given[1] = _as_rule(rule, "defjvp"), rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = containers.flatten(args)
        static = {n: leaf for n, leaf in enumerate(leaves) if is_static(leaf)}
        function, vjp_rule, jvp_rule = self._function, self._vjp, self._jvp
        if kwargs:
            function = functools.partial(function, **kwargs)
            vjp_rule = _with_keywords(vjp_rule, kwargs, len(args))
            jvp_rule = _with_keywords(jvp_rule, kwargs, len(args))
        run = Run(self.name, function, vjp_rule, jvp_rule, structure, static)
        run.unsure = None if self._deterministic else UNSURE
        if static:
            leaves = [leaf for n, leaf in enumerate(leaves) if n not in static]
        try:
            return run.call(leaves)
        except UnknownSizeError as error:
            return error.deferred(self, args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return bound(self, self._function, instance)

    def made_by(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return CustomFunction, (self._function, *self._given, self._deterministic)


def _parameters(rule: Rule) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(rule).parameters.values())
    except (TypeError, ValueError):  # built-in functions need not have one
        return []


def _as_rule(rule: Rule, name: str) -> Rule:
    """A rule that gets the arguments last, even if it was written as a method."""
    parameters = _parameters(as_function(rule, name))
    if not parameters or parameters[0].name not in ("self", "cls"):
        return rule

    @functools.wraps(rule)
    def of_method(derivative: Any, out: Any, instance: Any, *args: Any, **kwargs: Any) -> Any:
        return rule(instance, derivative, out, *args, **kwargs)

    return of_method


def _with_keywords(rule: Rule | None, kwargs: dict[str, Any], count: int) -> Rule | None:
    """A rule that gets those keyword arguments of a call that it has parameters for."""
    if rule is None:
        return None
    parameters = _parameters(rule)
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return functools.partial(rule, **kwargs)
    taken = {p.name for p in [p for p in parameters if p.kind in _POSITIONAL][: _BEFORE + count]}
    free = {p.name for p in parameters} - taken
    return functools.partial(rule, **{name: kwargs[name] for name in kwargs if name in free})


def _custom(
    name: str, function: Callable[..., Any] | None, deterministic: bool
) -> CustomFunction | Callable[[Callable[..., Any]], CustomFunction]:
    """The function with rules, or a decorator that makes one."""
    checked_flag(name, "deterministic", deterministic)
    if function is None:
        return lambda function: CustomFunction(
            as_function(function, name), deterministic=deterministic
        )
    return CustomFunction(as_function(function, name), deterministic=deterministic)


@overload
def custom_vjp(
    function: Callable[..., Any], /, *, deterministic: bool = False
) -> CustomFunction: ...


@overload
def custom_vjp(
    function: None = None, /, *, deterministic: bool = False
) -> Callable[[Callable[..., Any]], CustomFunction]: ...


def custom_vjp(
    function: Callable[..., Any] | None = None, /, *, deterministic: bool = False
) -> CustomFunction | Callable[[Callable[..., Any]], CustomFunction]:
    """Give a function its own reverse-mode rule, set with `@function.defvjp`.

    The rule `rule(ct, out, *args)` returns a tuple with one cotangent per positional argument
    (None for zero). Keyword arguments are constants, which the rule gets if it has parameters for
    them. Arguments that are not arrays (functions, strings, the `self` of a method) are passed as
    they are; their cotangent is None, or left out. A forward-mode rule can be added with
    `@function.defjvp`; without it, forward mode through the function raises.

    Args:
        function: The function; if it is left out, the result is a decorator.
        deterministic: Whether it does the same whenever its arguments are the same, as do its
            rules; `gt.DeterministicMode.Strict` asks for that.

    >>> @gt.custom_vjp
    ... def clipped(x):
    ...     return gt.clip(x, -1.0, 1.0)
    >>> @clipped.defvjp
    ... def straight_through(ct, out, x):
    ...     return (ct,)
    >>> gt.grad(clipped)(3.0)
    np.float64(1.0)
    """
    return _custom("custom_vjp", function, deterministic)


@overload
def custom_jvp(
    function: Callable[..., Any], /, *, deterministic: bool = False
) -> CustomFunction: ...


@overload
def custom_jvp(
    function: None = None, /, *, deterministic: bool = False
) -> Callable[[Callable[..., Any]], CustomFunction]: ...


def custom_jvp(
    function: Callable[..., Any] | None = None, /, *, deterministic: bool = False
) -> CustomFunction | Callable[[Callable[..., Any]], CustomFunction]:
    """Give a function its own forward-mode rule, set with `@function.defjvp`.

    The rule `rule(tangents, out, *args)` returns the tangent of the output (None for zero, as for
    integers) and is linear in the tangents, so that reverse mode follows from it by transposition.
    Keywords and arguments that are not arrays are as for `custom_vjp`; the latter get tangent None.

    Args:
        function: The function; if it is left out, the result is a decorator.
        deterministic: Whether it does the same whenever its arguments are the same, as do its
            rules; `gt.DeterministicMode.Strict` asks for that.

    >>> @gt.custom_jvp
    ... def cube(x):
    ...     return x**3
    >>> @cube.defjvp
    ... def rule(tangents, out, x):
    ...     return 3 * x**2 * tangents[0]
    >>> gt.grad(cube)(2.0)
    np.float64(12.0)
    """
    return _custom("custom_jvp", function, deterministic)
