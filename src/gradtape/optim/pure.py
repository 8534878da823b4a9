"""The pure form of optimizers: functions from trees of arrays to new trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from gradtape import containers
from gradtape.core.call import is_differentiable
from gradtape.errors import ArgumentError, DTypeError, ShapeError, a_type
from gradtape.ops.shared_options import options
from gradtape.optim.numbers import CHECKS, Check, Numbers, at_step, has_schedule, number
from gradtape.optim.stepping import Factors, Item, Rule, Slots, as_array, computing_dtype

# The state of many parameters: numbers such as the step, and a tree of their structure per slot.
State = dict[str, Any]

# What pure functions of optimizers take.
TREES = {
    "params": "A tree of arrays or tensors; of a module, its parameters.",
    "grads": "Their gradients, a tree of the same structure.",
    "state": "The state that `init` or the last `apply` returned.",
    "value_and_grad": "Takes parameters; returns the loss and its gradients.",
}


class PureOptimizer:
    """What optimizers are as pure functions: `init` and `apply`; see `Optimizer`."""

    # Numbers of this class alone and how they are checked, besides those that many have.
    checks: ClassVar[dict[str, Check]] = {}
    # The names of the arrays that are remembered for each parameter.
    slots: ClassVar[tuple[str, ...]] = ()
    # Whether it steps along the gradients that it is given, not along others that it asks for.
    follows_given: ClassVar[bool] = True

    defaults: Numbers

    def __init__(self, **numbers: Any) -> None:
        self.defaults = Numbers(self._checked_numbers, numbers)

    # ---- what a subclass says --------------------------------------------------------------

    def check(self, numbers: Mapping[str, Any]) -> None:
        """Raise if numbers do not fit together."""

    def slot_names(self, numbers: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the arrays that are remembered; for those that depend on numbers."""
        return self.slots

    def slot_shapes(
        self, shape: tuple[int, ...], numbers: Mapping[str, Any]
    ) -> list[tuple[int, ...]]:
        """The shapes of the slots of a parameter: its own."""
        return [shape for _ in self.slot_names(numbers)]

    def clock(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """The numbers that change with each step, such as `{"step": 0}`, before the first one."""
        return {}

    def first_clock(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """The clock before the first step; schedules need the step."""
        step = {"step": 0} if has_schedule(numbers) else {}
        return step | self.clock(numbers)

    def tick(self, numbers: Mapping[str, Any], clock: Mapping[str, Any]) -> dict[str, Any]:
        """The clock one step later."""
        return {"step": clock["step"] + 1} if clock else {}

    def start(self, value: Any, numbers: Mapping[str, Any]) -> Slots:
        """Return the slots of one parameter before the first step: zeros."""
        return tuple([np.zeros_like(value) for _ in self.slot_names(numbers)])

    def factors(self, numbers: Mapping[str, Any], clock: Mapping[str, Any]) -> Factors:
        """Return the numbers that `update` needs; they are the same for all parameters.

        Args:
            numbers: Those of the optimizer, such as `numbers["lr"]`.
            clock: The clock at this step; its first step is number 1.

        Returns:
            Numbers, and None for one that is not needed: `update` may ask for that alone.
        """
        return (numbers["lr"],)

    @staticmethod
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """Return the new value of one parameter, and its new slots.

        It is a static method, and gets everything it needs in the factors, so that one compiled
        form serves all optimizers of a class.

        Args:
            value: Its current array; like the other arguments, it must not be written to.
            gradient: An array of the same shape and dtype.
            slots: The arrays remembered for it.
            factors: The numbers, in the precision of the array.
        """
        raise NotImplementedError

    # ---- pure functions --------------------------------------------------------------------

    @options(TREES)
    def init(self, params: Any) -> State:
        """Return the state of parameters before the first step.

        Returns:
            A tree of the same structure for each slot, by name, and the number of steps so far as
            `"step"` if the rule counts.

        Raises:
            DTypeError: A parameter is not of floating-point or complex numbers.

        >>> gt.optim.SGD(lr=0.1, momentum=0.9).init({"w": np.ones(2)})
        {'momentum': {'w': array([0., 0.])}}
        """
        leaves, structure = containers.flatten(params)
        self._check_dtypes(leaves)
        numbers = self.defaults.read()
        # Python numbers: `gt.jit` takes any of them with the same code, and returns them.
        return self.first_clock(numbers) | self._by_name(
            numbers, structure, [self.started(leaf, numbers) for leaf in leaves]
        )

    @options(TREES)
    def apply(self, params: Any, grads: Any, state: Mapping[str, Any]) -> tuple[Any, State]:
        """Return the parameters and the state after one step; nothing is changed.

        Returns:
            New parameters and the new state, of the same structures, shapes and dtypes.

        Raises:
            ArgumentError: The gradients or the state have another structure than the parameters.
            DTypeError: A parameter is not of floating-point or complex numbers, or a gradient is
                complex and its parameter is not.
            ShapeError: A gradient or a slot has another shape than its parameter.

        >>> sgd = gt.optim.SGD(lr=0.1)
        >>> w = np.array([1.0, 2.0])
        >>> sgd.apply(w, 2 * w, sgd.init(w))
        (array([0.8, 1.6]), {})
        """
        values, structure = containers.flatten(params)
        self._check_dtypes(values)
        numbers = self.defaults.read()
        names, known = self.slot_names(numbers), self.first_clock(numbers)
        if not isinstance(state, Mapping) or set(state) != {*names, *known}:
            got = f"with {sorted(state)}" if isinstance(state, Mapping) else f"of {a_type(state)}"
            raise ArgumentError(
                f"{self.name}: got a state {got}, expected {sorted({*names, *known})}; make it by "
                "init(params)"
            )
        gradients = self._aligned(grads, "a gradient", values, structure)
        shapes = [self.slot_shapes(value.shape, numbers) for value in values]
        slots = [
            self._aligned(state[name], name, values, structure, [own[place] for own in shapes])
            for place, name in enumerate(names)
        ]
        before = {name: state[name] for name in known}
        numbers = at_step(numbers, self.name, before.get("step"))
        clock = self.tick(numbers, before)
        items = [
            Item(value, gradient, tuple(held))
            for value, gradient, *held in zip(values, gradients, *slots, strict=True)
        ]
        made = self._rule(numbers, clock).step(items)
        after = self._by_name(numbers, structure, [held for _, held in made])
        return containers.unflatten(structure, [value for value, _ in made]), clock | after

    def replace(self, **changes: Any) -> Self:
        """Return the same optimizer without parameters, with other numbers.

        Args:
            **changes: The new numbers by name.

        >>> gt.optim.SGD(lr=0.1, momentum=0.9).replace(lr=0.01).defaults["lr"]
        0.01
        """
        return type(self)(**{**self.defaults, **changes})

    @property
    def name(self) -> str:
        """The name in messages."""
        return type(self).__name__

    # ---- the parts of it -------------------------------------------------------------------

    def _rule(self, numbers: Mapping[str, Any], clock: Mapping[str, Any]) -> Rule:
        return Rule(
            self.name,
            type(self).update,
            self.factors(numbers, clock),
            numbers.get("maximize", False),
        )

    def started(self, value: Any, numbers: Mapping[str, Any] | None = None) -> Slots:
        """The slots of a parameter before its first step, in the dtype it is computed in."""
        numbers = self.defaults if numbers is None else numbers
        dtype = computing_dtype(value.dtype)
        wide = value if dtype == value.dtype else value.astype(dtype)
        return tuple(map(as_array, self.start(wide, numbers)))

    def _checked_numbers(self, given: dict[str, Any]) -> dict[str, Any]:
        checks = {**CHECKS, **self.checks}
        result = {
            option: checks.get(option, number)(value, self.name, option)
            for option, value in given.items()
        }
        self.check(result)
        return result

    def _by_name(self, numbers: Mapping[str, Any], structure: Any, held: list[Slots]) -> State:
        """The slots of all parameters, as one tree for each slot."""
        return {
            name: containers.unflatten(structure, [slots[place] for slots in held])
            for place, name in enumerate(self.slot_names(numbers))
        }

    def _check_dtypes(self, values: list[Any]) -> None:
        for value in values:
            if not (hasattr(value, "dtype") and is_differentiable(value)):
                kind = getattr(value, "dtype", type(value).__name__)
                raise DTypeError(
                    f"{self.name}: got a parameter of {kind}, expected an array or tensor of "
                    "floating-point or complex numbers; use np.asarray(x, float) for a number"
                )

    def _aligned(
        self,
        given: Any,
        what: str,
        values: list[Any],
        structure: Any,
        shapes: list[tuple[int, ...]] | None = None,
    ) -> list[Any]:
        """The leaves of a tree, checked to match the tree of parameters."""
        leaves, found = containers.flatten(given)
        if found != structure:
            raise ArgumentError(
                f"{self.name}: got {what} for each of {found}, expected the structure of the "
                f"parameters, {structure}"
            )
        expected = [value.shape for value in values] if shapes is None else shapes
        for leaf, value, shape in zip(leaves, values, expected, strict=True):
            if np.shape(leaf) != shape:
                raise ShapeError(
                    f"{self.name}: got {what} of shape {np.shape(leaf)}, expected {shape} for a "
                    f"parameter of shape {value.shape}"
                )
        return leaves
