"""Optimizers as objects: a rule applied to leaf tensors, with the state of each kept beside them.

A step gives a parameter a new array and never writes into the old one, which records may hold.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from numbers import Number
from typing import Any, ClassVar

import numpy as np

from gradtape import tree
from gradtape.class_fields import has_fields
from gradtape.core.level import LEAVES, Leaf
from gradtape.core.state import clear_default_context_tape
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ArgumentError, DTypeError, GradtapeError, ShapeError, UnsupportedError
from gradtape.lazy.variables import VariableEnvironment
from gradtape.optim.environment import EnvironmentOptimizer
from gradtape.optim.rule import Numbers, Rule, State, learning_rate


def of_rule(name: str) -> Any:
    """A property of an optimizer that reads and sets a number of its rule."""

    def get(optimizer: Optimizer) -> Any:
        return getattr(optimizer.rule, name)

    def put(optimizer: Optimizer, value: Any) -> None:
        optimizer.rule = optimizer.rule.replace(**{name: _plain(value)})

    return property(get, put, doc=f"The rule's `{name}`; may be set between steps.")


def _plain(number: Any) -> Any:
    """A Python number: parameters are arrays, and a tensor would turn them into tensors."""
    if isinstance(number, tuple | list):
        return [_plain(part) for part in number]
    return float(number) if isinstance(number, Tensor) else number


class Optimizer:
    """Base class of optimizers: a subclass names its `kind` of rule, or says how arrays change.

    There are two ways to use one. If it is made with its parameters, `step()` and `zero_grad()`
    apply to those. If it is made without, `step(params)` and `zero_grad(params)` say each time
    which ones are meant, and `zero_grad(params)` also clears the tape of the default context.

    Args:
        params: Leaf tensors that require a gradient, in a sequence, a dict, a dataclass or nested
            ones; one that appears twice counts once.
        lr: The learning rate.
        **numbers: Further numbers that the rule takes.

    Attributes:
        rule: The pure rule, with the numbers as they are now.

    Raises:
        ArgumentError: The learning rate is not a positive number, or a parameter is not a leaf
            that requires a gradient.
        DTypeError: A parameter is not a tensor.

    >>> class Descent(gt.optim.Optimizer):
    ...     def update(self, value, gradient, state):
    ...         return value - self.lr * gradient
    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> Descent([w], lr=0.1).step()
    >>> w
    tensor([0.8], requires_grad=True)
    """

    kind: ClassVar[type[Rule]] = Rule
    # What `default` gives to a rule that has no numbers by default.
    usual: ClassVar[dict[str, Any]] = {}

    lr = of_rule("lr")

    def __init__(self, params: Any = None, *, lr: float | None = None, **numbers: Any) -> None:
        self._name = type(self).__name__
        if isinstance(params, Number):
            raise ArgumentError(
                f"{self._name}: got the number {params} as parameters, expected a sequence or dict "
                f"of tensors; a learning rate is given by its name, lr={params}"
            )
        given = {name: _plain(value) for name, value in numbers.items()}
        self.rule = self.kind(lr=learning_rate(_plain(lr), self._name), **given)
        self._numbers = Numbers(self.rule, 1)
        self.params: list[Tensor] | None = None if params is None else self._checked(params)
        # Kept for as long as the parameters live.
        self._states: dict[int, tuple[weakref.ref[Tensor], State, tuple[int, ...]]] = {}

    @classmethod
    def on_environment(
        cls, name: str, var_ids: Iterable[int], env: VariableEnvironment, **numbers: Any
    ) -> EnvironmentOptimizer:
        """Make an optimizer of variables of an environment, which keeps its state there.

        Args:
            name: The namespace for its state, such as `"adam"`. State that is there already, for
                the same variables, is continued.
            var_ids: The ids of the variables.
            env: The environment.
            **numbers: The numbers of the rule, such as `lr=0.01`.

        Returns:
            An optimizer with `update(variables, grads, ctx, feeder)`.

        Raises:
            ArgumentError: A number is out of its range, or the namespace has other variables.
            DTypeError: A variable is not of floating-point or complex numbers.
            VariableError: There is no variable of an id.

        >>> env = gt.VariableEnvironment()
        >>> w = env.name("w").set([1.0, 2.0])
        >>> sgd = gt.optim.SGD.on_environment("sgd", [w], env, lr=0.5, momentum=0.9)
        >>> sgd.update([w], [np.ones(2)])
        >>> env.array(w), env.namespace("sgd").current_var_names()
        (array([0.5, 1.5]), ['momentum.w'])
        """
        if cls.update is not Optimizer.update:
            raise UnsupportedError(
                f"{cls.__name__}: it has an `update` of its own, which keeps its state in tensors; "
                "state it as a gt.optim.Rule and name that as its kind"
            )
        given = {option: _plain(value) for option, value in numbers.items()}
        try:
            rule = cls.kind(**given)
        except TypeError as error:
            if isinstance(error, GradtapeError):
                raise
            raise ArgumentError(
                f"{cls.__name__}: got the numbers {sorted(given)}, expected those of its rule; "
                f"{error}"
            ) from None
        return EnvironmentOptimizer(name, var_ids, env, rule)

    @classmethod
    def default(
        cls, name: str, var_ids: Iterable[int], env: VariableEnvironment
    ) -> EnvironmentOptimizer:
        """Make an optimizer of variables of an environment, with numbers that mostly do.

        The learning rate is 0.01 for SGD and for Adam; `on_environment` takes others.

        Args:
            name: The namespace for its state, such as `"adam"`.
            var_ids: The ids of the variables.
            env: The environment.

        Returns:
            An optimizer with `update(variables, grads, ctx, feeder)`; see `on_environment`.

        Raises:
            ArgumentError: The namespace has other variables, or the rule has no numbers of its own.
            DTypeError: A variable is not of floating-point or complex numbers.
            VariableError: There is no variable of an id.

        >>> env = gt.VariableEnvironment()
        >>> w = env.name("w").set([1.0, 2.0])
        >>> gt.optim.Adam.default("adam", env.default_namespace().current_var_ids(), env)
        <Adam 'adam', lr=0.01, 1 variables>
        """
        return cls.on_environment(name, var_ids, env, **cls.usual)

    def update(self, value: Any, gradient: Any, state: State) -> Any:
        """Return the new value of a parameter.

        Args:
            value: The array it holds; must not be written to.
            gradient: An array of the same shape and dtype; must not be written to.
            state: The state of this parameter; empty at first.

        Returns:
            A new array of the same shape and dtype.
        """
        rule, numbers = self.rule, self._numbers
        step = state.get("step", 0) + 1 if rule.counts else None
        if numbers.rule is not rule or numbers.step != step:
            numbers = self._numbers = Numbers(rule, step)
        if names := numbers.slots:
            slots = tuple(map(state.__getitem__, names)) if state else rule.start(value)
            result, after = rule.stepped(value, gradient, slots, numbers)
            for place, name in enumerate(names):
                state[name] = after[place]
        else:
            result, _ = rule.stepped(value, gradient, (), numbers)
        if step is not None:
            state["step"] = step
        # NumPy turns arrays without axes into numbers.
        return np.asarray(result) if isinstance(result, np.generic) else result

    def step(self, params: Any = None) -> None:
        """Give every parameter that has a gradient its next value.

        Args:
            params: The parameters; those the optimizer was made with if not given.

        Raises:
            ArgumentError: No parameters were given, neither now nor before.
            ShapeError: A parameter has changed its shape since the last step.
        """
        # All are checked before the first one changes.
        work = []
        for param in self._meant(params, "step"):
            record = param.record
            gradient = record.grad if type(record) is Leaf else None
            if gradient is None:
                continue
            value, ct = param.value, gradient.value
            if type(ct) is not np.ndarray:
                ct = np.asarray(innermost(gradient))
            shape = value.shape
            if ct.shape != shape:
                raise ShapeError(
                    f"{self._name}: got a gradient of shape {ct.shape} for a parameter of shape "
                    f"{shape}; zero_grad() after changing the shape of a parameter"
                )
            work.append((param, value, ct, self._state_of(param, shape)))
        for param, value, ct, state in work:
            param.value = self.update(value, ct, state)

    def zero_grad(self, params: Any = None) -> None:
        """Set the gradients of the parameters to zeros.

        Args:
            params: The parameters. If they are given, the tape of the default context is cleared
                as well; otherwise those the optimizer was made with are meant, and tapes are left
                alone.

        Raises:
            ArgumentError: No parameters were given, neither now nor before.
        """
        for param in self._meant(params, "zero_grad"):
            param.zero_grad()
        if params is not None:
            clear_default_context_tape()

    def state_dict(self) -> dict[str, Any]:
        """Copies of all state as arrays, by position of the parameter: `{"0.momentum": array}`.

        Returns:
            New arrays, which `np.savez` can keep.

        Raises:
            ArgumentError: The optimizer was made without parameters, so that they have no order.
        """
        return {
            f"{position}.{name}": np.array(value)
            for position, param in enumerate(self._meant(None, "state_dict"))
            for name, value in self._state_of(param, param.shape).items()
        }

    def load_state_dict(self, states: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned.

        Args:
            states: Arrays by name, as it returned them, for parameters in the same order.

        Raises:
            ArgumentError: There is no parameter at a position, or a part of its state is missing.
            ShapeError: A state does not have the shape of its parameter.
        """
        params, rule = self._meant(None, "load_state_dict"), self.rule
        loaded: list[State] = [{} for _ in params]
        fresh = [dict(zip(rule.slots, rule.start(param.value), strict=True)) for param in params]
        for entry, value in states.items():
            position, _, name = entry.partition(".")
            if not (position.isdecimal() and name and int(position) < len(params)):
                raise ArgumentError(
                    f"{self._name}: got state {entry!r}, expected names such as '0.momentum' with "
                    f"the position of one of {len(params)} parameters"
                )
            own = fresh[int(position)].get(name)
            array = np.array(value, None if own is None else own.dtype)
            shape = params[int(position)].shape
            if array.shape != shape and name != "step":
                raise ShapeError(
                    f"{self._name}: got state {entry!r} of shape {array.shape}, expected {shape}"
                )
            loaded[int(position)][name] = int(array) if name == "step" else array
        for place, state in enumerate(loaded):
            if state and (missing := sorted(rule.state_names.difference(state))):
                raise ArgumentError(
                    f"{self._name}: got no state '{place}.{missing[0]}', expected "
                    f"{sorted(rule.state_names)} of each parameter; is it another optimizer's?"
                )
        held = [self._state_of(param, param.shape) for param in params]
        for own, state in zip(held, loaded, strict=True):
            own.clear()
            own.update(state)

    def __repr__(self) -> str:
        count = "no" if self.params is None else len(self.params)
        return f"<{self._name}, lr={self.lr}, {count} parameters of its own>"

    def _meant(self, params: Any, method: str) -> list[Tensor]:
        if params is not None:
            return self._checked(params)
        if self.params is None:
            raise ArgumentError(
                f"{self._name}.{method}: got no parameters; give them here, or make the "
                f"optimizer with them: {self._name}(params, lr=...)"
            )
        return self.params

    def _checked(self, params: Any) -> list[Tensor]:
        """The parameters as a list, each a leaf that requires a gradient."""
        known = isinstance(params, list | tuple | dict) or has_fields(type(params))
        if isinstance(params, Tensor) or not (known or isinstance(params, Iterable)):
            raise DTypeError(
                f"{self._name}: got a {type(params).__name__} as parameters, expected a sequence "
                "or dict of tensors: [w, b]"
            )
        result: list[Tensor] = tree.flatten(params if known else list(params))[0]
        for param in result:
            if not isinstance(param, Tensor):
                raise DTypeError(
                    f"{self._name}: got a parameter of type {type(param).__name__}, expected "
                    "tensors: gt.tensor(array, requires_grad=True)"
                )
            record = param.record
            if record is None or record.segment is not LEAVES:
                what = "does not require a gradient" if record is None else "is a recorded result"
                raise ArgumentError(
                    f"{self._name}: got a parameter of shape {param.shape} that {what}, expected a "
                    "leaf: x.set_requires_grad(True), after detach() if need be"
                )
        return list({id(param): param for param in result}.values())

    def _state_of(self, param: Tensor, shape: tuple[int, ...]) -> State:
        """The state of a parameter; empty if it has none yet.

        Tensors compare element by element, so they are identified by `id`; the weak reference
        beside the state removes it before another object can have that id.
        """
        entry = self._states.get(id(param))
        if entry is None:
            number, states = id(param), self._states
            reference = weakref.ref(param, lambda _: states.pop(number, None))
            states[number] = entry = (reference, {}, shape)
        elif entry[2] != shape:
            raise ShapeError(
                f"{self._name}: got a parameter of shape {shape}; at its first step it had shape "
                f"{entry[2]}; make a new optimizer"
            )
        return entry[1]
