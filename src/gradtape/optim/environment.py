"""Optimizers of variables in an environment: pure functions, with their state in variables.

The state of an optimizer called "adam" is in the namespace "adam" of the same environment, so that
it is saved and loaded with the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, ShapeError, VariableError, a_type
from gradtape.lazy.variables import VariableEnvironment, VariableId
from gradtape.optim.pure import PureOptimizer


class EnvironmentOptimizer:
    """An optimizer of variables; made by `gt.optim.Adam.default` or `on_environment`.

    It keeps for each variable what its rule remembers, and how many steps that variable has made:
    for a variable `"layer/w"` of Adam, the variables `mean.layer.w`, `square.layer.w` and
    `step.layer.w` in the namespace of the optimizer. If they are in the environment already,
    because it was loaded from a file, the optimizer continues from them.

    Args:
        name: Its namespace, such as `"adam"`.
        variables: The ids of the variables it may change.
        environment: The environment they are in.
        optimizer: The optimizer whose pure functions are used.

    Attributes:
        name: Its namespace.
        optimizer: That optimizer; its `defaults` may be set between updates.

    Raises:
        ArgumentError: No or not only ids are given, one appears twice, or the namespace holds the
            state of other variables.
        DTypeError: A variable is not of floating-point or complex numbers.
        ShapeError: The state in the environment has another shape than its variable.
        VariableError: There is no variable of an id.

    >>> env = gt.VariableEnvironment()
    >>> w = env.name("w").set(np.array([1.0, 2.0]))
    >>> adam = gt.optim.Adam.on_environment("adam", [w], env, lr=0.1)
    >>> adam.update([w], [2 * env.array(w)])
    >>> env.array(w).round(6)
    array([0.9, 1.9])
    >>> env.namespace("adam").current_var_names()
    ['mean.w', 'square.w', 'step.w']
    """

    def __init__(
        self,
        name: str,
        variables: Iterable[VariableId],
        environment: VariableEnvironment,
        optimizer: PureOptimizer,
    ) -> None:
        if not isinstance(environment, VariableEnvironment):
            raise ArgumentError(
                f"{optimizer.name}: got {a_type(environment)}, expected a gt.VariableEnvironment"
            )
        self.name = name
        self.optimizer = optimizer
        self._environment = environment
        # The variables of the state, by name, of each variable.
        self._state = self._placed(self._checked_ids(variables))

    @property
    def lr(self) -> Any:
        """The learning rate; may be set between updates."""
        return self.optimizer.defaults["lr"]

    @lr.setter
    def lr(self, value: Any) -> None:
        self.optimizer.defaults["lr"] = value

    @property
    def variables(self) -> list[VariableId]:
        """The ids of the variables it may change."""
        return list(self._state)

    def update(
        self, variables: Sequence[Any], grads: Sequence[Any], ctx: Any = None, feeder: Any = None
    ) -> None:
        """Give variables their next values: all of them, or none if anything is wrong.

        Args:
            variables: Variables of the context as lazy tensors, or names or ids.
            grads: The gradient of each: lazy tensors, which are evaluated, or arrays.
            ctx: The context of the lazy tensors; not needed without any.
            feeder: The values of the placeholders that the gradients depend on, if there are any.

        Raises:
            ArgumentError: There is not one gradient for each variable, a variable appears twice or
                is not one of the optimizer, or lazy tensors are given without their context.
            DTypeError: A gradient is complex and its variable is not, or is no array of numbers.
            ShapeError: A gradient has another shape than its variable.
        """
        ids = [self._id_of(variable, ctx) for variable in _listed(variables, "variables")]
        given = _listed(grads, "grads")
        if len(ids) != len(given):
            raise ArgumentError(
                f"update: got {len(given)} gradients for {len(ids)} variables, expected one for "
                "each"
            )
        if len(set(ids)) < len(ids):
            raise ArgumentError("update: got a variable twice; add up its gradients")
        gradients = dict(zip(ids, self._evaluated(given, ctx, feeder), strict=True))
        changed = self._stepped(gradients)
        # A rule of users may return the gradient it was given, or a part of something.
        given_back = {id(gradient) for gradient in gradients.values()}
        is_own = all(
            id(value) not in given_back and getattr(value, "base", None) is None
            for value in changed.values()
        )
        self._environment.assign_all(changed, copy=not is_own)

    def __repr__(self) -> str:
        return f"<{self.optimizer.name} {self.name!r}, lr={self.lr}, {len(self._state)} variables>"

    # ---- one step --------------------------------------------------------------------------

    def _stepped(self, gradients: dict[VariableId, Any]) -> dict[VariableId, Any]:
        """The new values of variables and of their state, by id."""
        array, optimizer = self._environment.array, self.optimizer
        slots, clock = self._names()
        # Those that have made as many steps go together.
        groups: dict[tuple[Any, ...], list[VariableId]] = {}
        for number in gradients:
            times = tuple([array(self._state[number][name]).item() for name in clock])
            groups.setdefault(times, []).append(number)
        changed: dict[VariableId, Any] = {}
        for times, group in groups.items():
            held = {slot: {n: array(self._state[n][slot]) for n in group} for slot in slots}
            values, state = optimizer.apply(
                {n: array(n) for n in group},
                {n: gradients[n] for n in group},
                held | dict(zip(clock, times, strict=True)),
            )
            changed |= values
            for slot, place in ((slot, n) for slot in slots for n in group):
                changed[self._state[place][slot]] = state[slot][place]
            for name in clock:
                changed |= {self._state[n][name]: state[name] for n in group}
        return changed

    def _names(self) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The names of the slots, and the numbers that count steps before the first one."""
        numbers = self.optimizer.defaults
        return self.optimizer.slot_names(numbers), self.optimizer.first_clock(numbers)

    def _evaluated(self, grads: list[Any], ctx: Any, feeder: Any) -> list[Any]:
        """The gradients as arrays."""
        lazy = [position for position, grad in enumerate(grads) if not _is_known(grad)]
        if lazy and ctx is None:
            raise ArgumentError(
                f"update: got {a_type(grads[lazy[0]])} as a gradient without a context, expected "
                "an array; give ctx for lazy tensors"
            )
        values = [None if place in lazy else _as_array(g) for place, g in enumerate(grads)]
        if lazy:
            evaluator = ctx.evaluator().extend([grads[position] for position in lazy])
            if feeder is not None:
                evaluator = evaluator.set_feeder(feeder)
            for position, value in zip(lazy, evaluator.run(), strict=True):
                values[position] = _as_array(value)
        return values

    def _id_of(self, variable: Any, ctx: Any) -> VariableId:
        """The id of a variable, checked to be one of the optimizer."""
        if isinstance(variable, str):
            found = self._environment.id_of(variable)
        elif isinstance(variable, int | np.integer) and not isinstance(variable, bool):
            found = int(variable)
        elif ctx is None:
            raise ArgumentError(
                f"update: got {a_type(variable)} as a variable without a context, expected an id "
                "or a name; give ctx for lazy tensors"
            )
        elif getattr(ctx, "variables", self._environment) is not self._environment:
            raise ArgumentError(
                "update: got a context of another environment; run the function by env.run of the "
                "one that the optimizer was made with"
            )
        else:
            found = ctx.variable_id(variable)
        if found not in self._state:
            known = found in self._environment
            raise ArgumentError(
                f"update: got variable {self._environment.name_of(found) if known else found!r}, "
                f"expected one of those that the optimizer {self.name!r} was made for: "
                f"{', '.join(map(self._environment.name_of, self._state))}"
            )
        return found

    # ---- its state in the environment ------------------------------------------------------

    def _checked_ids(self, variables: Iterable[VariableId]) -> list[VariableId]:
        ids = _listed(variables, "var_ids")
        if not ids:
            raise ArgumentError(
                f"{self.optimizer.name}: got no variables, expected at least one id"
            )
        values = []
        for number in ids:
            try:
                values.append(self._environment.array(number))
            except VariableError:
                raise VariableError(
                    f"{self.optimizer.name}: got {number!r} among the variables, expected their "
                    "ids, such as env.default_namespace().current_var_ids()"
                ) from None
        if len(set(ids)) < len(ids):
            raise ArgumentError(f"{self.optimizer.name}: got a variable twice: {ids}")
        self.optimizer.init(values)  # checks the dtypes
        return [int(number) for number in ids]

    def _placed(self, ids: list[VariableId]) -> dict[VariableId, dict[str, VariableId]]:
        """Find the variables of the state, or make them if there are none of them."""
        environment, optimizer = self._environment, self.optimizer
        names, clock = self._names()
        counted = {name: np.asarray(value) for name, value in clock.items()}
        space = environment.namespace(self.name)
        first: dict[str, tuple[VariableId, str, Any]] = {}
        for number in ids:
            own = environment.name_of(number).replace("/", ".")
            slots = dict(zip(names, optimizer.started(environment.array(number)), strict=True))
            for part, value in (slots | counted).items():
                if (name := f"{part}.{own}") in first:
                    raise ArgumentError(
                        f"{optimizer.name}: got two variables whose state would be called "
                        f"{name!r}; rename one of them, or use two optimizers"
                    )
                first[name] = number, part, np.asarray(value)
        found = [name for name in first if name in space]
        if len(space) and (len(found) < len(first) or len(space) > len(first)):
            raise ArgumentError(
                f"{optimizer.name}: got the name {self.name!r}, a namespace with other variables: "
                f"{', '.join(space.current_var_names()[:5])}, …; choose another name"
            )
        for name in found:
            self._check_state(space.id_of(name), first[name][2])
        state: dict[VariableId, dict[str, VariableId]] = {number: {} for number in ids}
        for name, (number, part, value) in first.items():
            state[number][part] = space.id_of(name) if found else space.name(name).set(value)
        return state

    def _check_state(self, number: VariableId, expected: Any) -> None:
        array = self._environment.array(number)
        if array.shape != expected.shape or array.dtype != expected.dtype:
            raise ShapeError(
                f"{self.optimizer.name}: got {array.dtype}{list(array.shape)} in "
                f"{self._environment.name_of(number)!r}, expected "
                f"{expected.dtype}{list(expected.shape)}, as its variable has"
            )


def _listed(given: Any, what: str) -> list[Any]:
    if isinstance(given, str | Tensor | np.ndarray) or not isinstance(given, Iterable):
        raise ArgumentError(f"update: got {a_type(given)} as {what}, expected a list")
    return list(given)


def _is_known(gradient: Any) -> bool:
    """Whether a gradient has a value already."""
    while isinstance(gradient, Tensor):
        gradient = gradient.value
    return isinstance(gradient, np.ndarray | np.generic | Number)


def _as_array(gradient: Any) -> Any:
    value = gradient.detach() if isinstance(gradient, Tensor) else gradient
    array = np.asarray(value)
    if array.dtype.kind in "OSUMm":
        raise DTypeError(f"update: got a gradient of {array.dtype}, expected an array of numbers")
    return array
