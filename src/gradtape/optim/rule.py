"""Pure rules: how parameters change, as functions from old values and state to new ones.

A rule is written with operators only, so that it runs on whatever has them: arrays, tensors that
are differentiated or batched, and the tensors of a trace. Nothing is written in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, ClassVar, Self

import numpy as np

from gradtape import tree
from gradtape.config import uses
from gradtape.core.call import is_differentiable
from gradtape.core.kernels import numpy_is_quiet
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.locks import load, once
from gradtape.ops.arguments import as_number

# The state of many parameters: a tree of their structure for each slot, and perhaps a step count.
State = dict[str, Any]
# A Python number, or a tensor without axes, which may be differentiated, batched or traced.
Number = Any
# The numbers of one step, None for those that are not needed.
Factors = tuple[Any, ...]
# The arrays that are remembered for one parameter.
Slots = tuple[Any, ...]
Update = Callable[[Any, Any, Slots, Factors], tuple[Any, Slots]]

# For arrays of so many elements the rule is compiled: NumPy goes through memory once for each
# operator. Only the size decides, so that every step of a training gives the same bits.
WORTH_COMPILING = 1 << 13


class Rule:
    """Base class of pure rules; a subclass says in `update` how one array changes.

    `init` makes the state of parameters, and `apply` maps parameters, gradients and state to new
    parameters and a new state. Both are pure functions of trees (a single array, or nested lists,
    tuples and dicts of them), so that they can be compiled with the rest of a training step,
    batched, and differentiated.

    Numbers such as the learning rate may be tensors without axes: arguments of `gt.jit`, `gt.vmap`
    or `gt.grad`. Whether those are in range is not checked. float16 and bfloat16 are computed in
    float32, and rounded once.

    A subclass may also name `slots`, arrays that are remembered for each parameter, and set
    `counts` to have the number of the step. Its numbers are attributes, named as the arguments of
    its `__init__`.

    Args:
        lr: The learning rate.

    Raises:
        ArgumentError: The learning rate is missing, or not a positive number.

    >>> class SignDescent(gt.optim.Rule):
    ...     @staticmethod
    ...     def update(value, gradient, slots, factors):
    ...         (lr,) = factors
    ...         return value - lr * np.sign(gradient), slots
    >>> rule = SignDescent(lr=0.5)
    >>> params, grads = {"w": np.ones(2)}, {"w": np.array([3.0, -4.0])}
    >>> params, state = rule.apply(params, grads, rule.init(params))
    >>> params
    {'w': array([0.5, 1.5])}
    """

    counts: ClassVar[bool] = False

    def __init__(self, *, lr: Number) -> None:
        self.lr = learning_rate(lr, self.name)

    @property
    def name(self) -> str:
        """The name in messages: the name of the optimizer with this rule."""
        return type(self).__name__.removesuffix("Rule") or "Optimizer"

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the arrays that are remembered for each parameter."""
        return ()

    @property
    def state_names(self) -> set[str]:
        """The names in a state."""
        return {*self.slots, "step"} if self.counts else {*self.slots}

    def start(self, value: Any) -> Slots:
        """Return the slots of one parameter before the first step: zeros."""
        return tuple([np.zeros_like(value) for _ in self.slots])

    def factors(self, step: Any) -> Factors:
        """Return the numbers that `update` needs; they are the same for all parameters.

        Args:
            step: The number of this step, from 1; None unless the rule counts.

        Returns:
            Numbers, and None for one that is not needed: `update` may ask for that alone.
        """
        return (self.lr,)

    @staticmethod
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """Return the new value of one parameter, and its new slots.

        It is a static method, and gets everything it needs from the rule in the factors, so that
        one compiled form of it serves all rules of a class.

        Args:
            value: Its current array; like the other arguments, it must not be written to.
            gradient: An array of the same shape and dtype.
            slots: The arrays remembered for it.
            factors: The numbers, in the precision of the array.
        """
        raise NotImplementedError

    def init(self, params: Any) -> State:
        """Return the state of parameters before the first step.

        Args:
            params: A tree of arrays or tensors.

        Returns:
            A tree of the same structure for each slot, by name, and the number of steps so far as
            `"step"` if the rule counts.

        Raises:
            DTypeError: A parameter is not of floating-point or complex numbers.

        >>> gt.optim.SGDRule(lr=0.1, momentum=0.9).init({"w": np.ones(2)})
        {'momentum': {'w': array([0., 0.])}}
        """
        leaves, structure = tree.flatten(params)
        self._check_dtypes(leaves)
        # A Python number: `gt.jit` takes any of them with the same code, and returns one.
        counted: State = {"step": 0} if self.counts else {}
        return counted | self._by_name(structure, [self.start(leaf) for leaf in leaves])

    def apply(self, params: Any, grads: Any, state: Mapping[str, Any]) -> tuple[Any, State]:
        """Return the parameters and the state after one step.

        Args:
            params: A tree of arrays or tensors.
            grads: Their gradients, a tree of the same structure.
            state: The state that `init` or the last `apply` returned.

        Returns:
            New parameters and the new state, of the same structures, shapes and dtypes.

        Raises:
            ArgumentError: The gradients or the state have another structure than the parameters.
            DTypeError: A parameter is not of floating-point or complex numbers, or a gradient is
                complex and its parameter is not.
            ShapeError: A gradient or a slot has another shape than its parameter.

        >>> rule = gt.optim.SGDRule(lr=0.1)
        >>> w = np.array([1.0, 2.0])
        >>> rule.apply(w, 2 * w, rule.init(w))
        (array([0.8, 1.6]), {})
        """
        values, structure = tree.flatten(params)
        self._check_dtypes(values)
        if set(state) != self.state_names:
            raise ArgumentError(
                f"{self.name}: got a state with {sorted(state)}, expected "
                f"{sorted(self.state_names)}; make it by init(params)"
            )
        gradients = self._aligned(grads, "a gradient", values, structure)
        slots = [self._aligned(state[name], name, values, structure) for name in self.slots]
        step = state["step"] + 1 if self.counts else None
        numbers = Numbers(self, step)
        new_values, new_slots = [], []
        for value, gradient, *held in zip(values, gradients, *slots, strict=True):
            new_value, after = self.stepped(value, gradient, tuple(held), numbers)
            new_values.append(_as_before(new_value, value))
            new_slots.append(tuple(map(_as_before, after, held)))
        counted: State = {"step": step} if self.counts else {}
        return tree.unflatten(structure, new_values), counted | self._by_name(structure, new_slots)

    def stepped(
        self, value: Any, gradient: Any, slots: Slots, numbers: Numbers
    ) -> tuple[Any, Slots]:
        """Run `update` in sufficient precision, compiled if that pays."""
        dtype = value.dtype
        if (gradient.dtype is not dtype and gradient.dtype != dtype) or dtype.itemsize <= 2:
            return self._converted(value, gradient, slots, numbers)
        update: Update = self.update
        factors = numbers.of(value)
        if value.size >= WORTH_COMPILING and type(value) is np.ndarray and dtype.kind == "f":
            update = _fastest(update, gradient, factors)
        return update(value, gradient, slots, factors)

    def _converted(
        self, value: Any, gradient: Any, slots: Slots, numbers: Numbers
    ) -> tuple[Any, Slots]:
        """`stepped` for a gradient of another dtype, and for dtypes that are computed wider."""
        dtype = value.dtype
        if gradient.dtype.kind == "c" and dtype.kind != "c":
            raise DTypeError(
                f"{self.name}: got a {gradient.dtype} gradient of a {dtype} parameter, expected a "
                "real one"
            )
        if dtype.itemsize > 2:
            return self.stepped(value, gradient.astype(dtype), slots, numbers)
        wide, ct, *held = [x.astype(np.float32) for x in (value, gradient, *slots)]
        result, after = self.stepped(wide, ct, tuple(held), numbers)
        return _as_before(result, value), tuple(map(_as_before, after, slots))

    def replace(self, **changes: Any) -> Self:
        """Return the same rule with other numbers.

        Args:
            **changes: The new numbers by name.

        >>> gt.optim.SGDRule(lr=0.1, momentum=0.9).replace(lr=0.01)
        SGDRule(lr=0.01, momentum=0.9, weight_decay=0.0, nesterov=False)
        """
        return type(self)(**{**vars(self), **changes})

    def __repr__(self) -> str:
        numbers = ", ".join([f"{name}={value}" for name, value in vars(self).items()])
        return f"{type(self).__name__}({numbers})"

    def _by_name(self, structure: Any, held: list[Slots]) -> State:
        """The slots of all parameters, as one tree for each slot."""
        return {
            name: tree.unflatten(structure, [slots[place] for slots in held])
            for place, name in enumerate(self.slots)
        }

    def _check_dtypes(self, values: list[Any]) -> None:
        for value in values:
            if not (hasattr(value, "dtype") and is_differentiable(value)):
                kind = getattr(value, "dtype", type(value).__name__)
                raise DTypeError(
                    f"{self.name}: got a parameter of {kind}, expected an array or tensor of "
                    "floating-point or complex numbers; use np.asarray(x, float) for a number"
                )

    def _aligned(self, given: Any, what: str, values: list[Any], structure: Any) -> list[Any]:
        """The leaves of a tree, checked to match the tree of parameters."""
        leaves, found = tree.flatten(given)
        if found != structure:
            raise ArgumentError(
                f"{self.name}: got {what} for each of {found}, expected the structure of the "
                f"parameters, {structure}"
            )
        for leaf, value in zip(leaves, values, strict=True):
            if np.shape(leaf) != value.shape:
                raise ShapeError(
                    f"{self.name}: got {what} of shape {np.shape(leaf)}, expected that of the "
                    f"parameter, {value.shape}"
                )
        return leaves


class Numbers:
    """The factors of a rule at one step, in the precision of each parameter.

    A number that is not Python's would turn the parameters into its own dtype. Python numbers adapt
    to any array, but NumPy takes longer to find that out than to multiply a small array.
    """

    def __init__(self, rule: Rule, step: Any) -> None:
        self.rule = rule
        self.step = step
        self._factors = rule.factors(step)
        self.slots = rule.slots
        self._made: dict[tuple[type, Any], Factors] = {}

    def of(self, value: Any) -> Factors:
        """The factors for this parameter."""
        kind, dtype = type(value), value.dtype
        made = self._made.get((kind, dtype.char))  # hashing a dtype takes longer
        if made is None:
            real = dtype if dtype.kind == "f" else np.finfo(dtype).dtype
            numbers = [_in_precision(x, real, kind is np.ndarray) for x in self._factors]
            made = self._made[kind, dtype.char] = tuple(numbers)
        return made


def _as_before(new: Any, old: Any) -> Any:
    """A result in the dtype of the value it replaces."""
    return new if new.dtype == old.dtype else new.astype(old.dtype)


def _in_precision(number: Number, dtype: np.dtype[Any], is_raw: bool) -> Any:
    if number is None or (type(number) is float and not is_raw):
        return number
    return np.asarray(number, dtype) if type(number) is float else number.astype(dtype)


def _fastest(update: Update, gradient: Any, factors: Factors) -> Update:
    """The rule compiled, if native code can do the same."""
    raw = type(gradient) is np.ndarray and not any(isinstance(x, Tensor) for x in factors)
    # Native code does not notice floating-point errors, which a user may want to see.
    if raw and numpy_is_quiet() and isinstance(update, FunctionType):
        return _compiled(update)
    return update


@once
def _compiled(update: Update) -> Update:
    if not uses("kernels"):
        return update
    try:
        load("llvmlite.binding")
    except ImportError:
        return update
    return load("gradtape.compiler.jit").jit(update)  # type: ignore[no-any-return]


def unless_zero(number: Number) -> Number | None:
    """A number, or None if it is known to be zero: the term it multiplies can be left out."""
    return None if type(number) is float and number == 0 else number


# ---- checks of numbers --------------------------------------------------------------------------


def number(value: Number, name: str, option: str) -> Number:
    """A Python number, or the tensor itself."""
    if not isinstance(value, Tensor):
        return as_number(value, name, option)
    if value.shape:
        raise ShapeError(f"{name}: got {option} of shape {value.shape}, expected one number")
    return value


def checked(
    value: Number, name: str, option: str, expected: str, is_right: Callable[[float], bool]
) -> Number:
    """A number checked to be in its range; the values of tensors are not checked."""
    result = number(value, name, option)
    if not (isinstance(result, Tensor) or is_right(result)):
        raise ArgumentError(f"{name}: got {option}={value}, expected {expected}")
    return result


def learning_rate(lr: Number, name: str) -> Number:
    """A learning rate, which is required."""
    if lr is None:
        raise ArgumentError(f"{name}: got no learning rate; give it as lr=0.1")
    return checked(lr, name, "lr", "a positive number", lambda x: x > 0 and math.isfinite(x))


def not_negative(value: Number, name: str, option: str) -> Number:
    """A number checked not to be negative."""
    return checked(value, name, option, "a number >= 0", lambda x: x >= 0)
