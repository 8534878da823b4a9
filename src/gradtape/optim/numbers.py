"""The numbers of an optimizer, such as its learning rate: checked whenever they are set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np

from gradtape.core.state import STATE
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_integer, as_number
from gradtape.ops.shared_options import options

# A Python number; a tensor without axes, which may be differentiated, batched or traced; or a
# schedule, a function from the number of steps so far to one of these.
Number = Any
# Takes a value, the name of the optimizer and that of the option; returns the checked value.
Check = Callable[[Any, str, str], Any]


def number(value: Number, name: str, option: str) -> Number:
    """A Python number, or the tensor or schedule itself."""
    if callable(value):
        return value
    if not isinstance(value, Tensor):
        return as_number(value, name, option)
    if value.shape:
        raise ShapeError(f"{name}: got {option} of shape {value.shape}, expected one number")
    return value


def _is_open(value: Any) -> bool:
    """Whether nothing is known of a number yet."""
    return isinstance(value, Tensor) or callable(value)


def checked(
    value: Number, name: str, option: str, expected: str, is_right: Callable[[float], bool]
) -> Number:
    """A number checked to be in its range; those of tensors and schedules are not checked."""
    result = number(value, name, option)
    if not (_is_open(result) or is_right(result)):
        raise ArgumentError(f"{name}: got {option}={value}, expected {expected}")
    return result


def learning_rate(lr: Number, name: str, option: str = "lr") -> Number:
    """A learning rate, which is required; schedules may end at 0."""
    if lr is None:
        raise ArgumentError(f"{name}: got no learning rate; give it as lr=0.1")
    return checked(lr, name, option, "a number >= 0", lambda x: x >= 0 and math.isfinite(x))


def not_negative(value: Number, name: str, option: str) -> Number:
    """A number checked not to be negative."""
    return checked(value, name, option, "a number >= 0", lambda x: x >= 0)


def positive_count(value: Any, name: str, option: str) -> int:
    """An integer from 1."""
    count = as_integer(value, name, option)
    if count < 1:
        raise ArgumentError(f"{name}: got {option}={value}, expected a positive integer")
    return count


def share(value: Number, name: str, option: str) -> Number:
    """A number in [0, 1)."""
    return checked(value, name, option, "a number in [0, 1)", lambda x: 0 <= x < 1)


def shares(value: Any, name: str, option: str) -> tuple[Number, Number]:
    """Two numbers in [0, 1)."""
    given = value if isinstance(value, tuple | list | np.ndarray) else ()
    pair = [number(beta, name, option) for beta in given]
    if not (len(pair) == 2 and all(_is_open(x) or 0 <= x < 1 for x in pair)):
        raise ArgumentError(f"{name}: got {option}={value}, expected two numbers in [0, 1)")
    return pair[0], pair[1]


def switch(value: Any, name: str, option: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name}: got {option}={value!r}, expected True or False")
    return bool(value)


# Numbers that mean the same in all optimizers that have them.
CHECKS: dict[str, Check] = {
    "lr": learning_rate,
    "betas": shares,
    "eps": not_negative,
    "weight_decay": not_negative,
    "maximize": switch,
}
_NUMBERS = {
    "params": "The parameters, or groups of them; they may also be given to each `step`.",
    "lr": "The learning rate.",
    "betas": "How much of the averages of the gradient and of its square is kept, in [0, 1).",
    "eps": "Added to the denominator.",
    "weight_decay": "How much of the parameter is added to its gradient.",
    "momentum": "How much of the last step's direction is kept, in [0, 1).",
    "decoupled_weight_decay": "Whether the parameter itself decays instead, as in AdamW.",
    "amsgrad": "Whether to divide by the root of the largest average so far (Reddi et al., 2018).",
    "maximize": "Whether to go up instead of down.",
}
# Completes the docstring of an optimizer with what arguments mean that many have.
explained = options(_NUMBERS, raises={"ArgumentError": "A number is out of its range."})


def arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor that hands all of them on, out of its `locals()`."""
    return {name: value for name, value in given.items() if name not in ("self", "__class__")}


def unless_zero(number: Number) -> Number | None:
    """A number, or None if it is known to be zero: the term it multiplies can be left out."""
    return None if type(number) is float and number == 0 else number


def plain(number: Any) -> Any:
    """Python numbers in place of tensors: parameters are arrays, which tensors would turn into
    tensors."""  # noqa: D205, D209
    if isinstance(number, tuple | list):
        return tuple([plain(part) for part in number])
    return number.item() if isinstance(number, Tensor) else number


def has_schedule(numbers: Mapping[str, Any]) -> bool:
    """Whether some of the numbers depend on the step."""
    return any(map(_is_schedule, numbers.values()))


def _is_schedule(value: Any) -> bool:
    return callable(value) or (isinstance(value, tuple) and any(map(callable, value)))


def at_step(numbers: dict[str, Any], name: str, step: Any) -> dict[str, Any]:
    """The numbers with schedules evaluated.

    Args:
        numbers: The numbers.
        name: The name of the optimizer.
        step: How many steps there have been.

    Raises:
        ArgumentError: A schedule returns something that is not a finite number.
    """
    if not has_schedule(numbers):
        return numbers
    return {option: _evaluated(value, step, name, option) for option, value in numbers.items()}


def _evaluated(value: Any, step: Any, name: str, option: str) -> Any:
    if isinstance(value, tuple):
        return tuple([_evaluated(part, step, name, option) for part in value])
    if not callable(value):
        return value
    found = value(step)
    if isinstance(found, Tensor):
        return found
    result = as_number(found, name, f"the schedule of {option}")
    if not math.isfinite(result):
        raise ArgumentError(f"{name}: got {result} from the schedule of {option} at step {step}")
    # Unlike a Python number it is not left out where it is zero for once.
    return np.float64(result)


class Numbers(MutableMapping[str, Any]):
    """Numbers by name, as in a dict that has always the same names.

    Args:
        check: Takes a dict of all of them; returns one that is checked, or raises.
        given: The numbers.
        fixed: Further items, which cannot be set.

    Attributes:
        first: The numbers as they were given, before a scheduler or anybody else set one.
    """

    __slots__ = ("_check", "_fixed", "_held", "_inputs", "_since", "_version", "first", "version")

    def __init__(
        self,
        check: Callable[[dict[str, Any]], dict[str, Any]],
        given: dict[str, Any],
        **fixed: Any,
    ) -> None:
        self._check = check
        self._fixed = fixed
        self._held = self.first = check(given)
        # Counts changes, so that what was computed from the numbers is known to be outdated.
        self.version = 0
        self._version = np.zeros((), np.int64)
        # What compiled functions have for numbers that change: a tensor for each part of them.
        self._inputs: dict[str, tuple[Tensor, ...]] = {}
        self._since = max([mode.number for mode in _traces()], default=0)
        if "lr" in self._held:
            self._is_input("lr", None)

    def read(self) -> dict[str, Any]:
        """The numbers as a dict; a function that reads them while it is traced depends on them.

        The learning rate is an input of the compiled function then, so that a schedule does not
        compile anew. If another number changes, the function is traced again, once: that number is
        an input from then on, unless it becomes zero, which leaves a term out.
        """
        traces = [mode for mode in _traces() if mode.number > self._since]
        for mode in traces:
            mode.depend_on(self._version)
        if not traces:
            return self._held
        return self._held | {
            name: parts if isinstance(self._held[name], tuple) else parts[0]
            for name, parts in self._inputs.items()
        }

    def plain(self) -> dict[str, Any]:
        """The numbers, with Python numbers in place of tensors."""
        return {name: plain(value) for name, value in self._held.items()}

    def saved(self) -> dict[str, Any]:
        """The numbers that a state has; schedules are part of the program."""
        return {name: x for name, x in self.plain().items() if not _is_schedule(x)}

    def with_changes(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The numbers with some changes, checked; nothing is set.

        Args:
            changes: Some of them by name.

        Raises:
            ArgumentError: There is none of a name, or one is out of its range.
        """
        if unknown := sorted(set(changes).difference(self._held)):
            raise ArgumentError(
                f"numbers of an optimizer: got {unknown[0]!r}, expected one of "
                f"{', '.join(self._held)}"
            )
        return self._check({**self._held, **changes})

    def _is_input(self, name: str, before: Any) -> bool:
        """Let compiled functions see the value of a number.

        Returns:
            Whether it was an input of theirs before, of the same form; if not, it is one now.
        """
        value, inputs = self._held[name], self._inputs.get(name, ())
        parts = value if isinstance(value, tuple) else (value,)
        if not all(type(part) is float for part in parts):
            self._inputs.pop(name, None)
            return False
        same = len(inputs) == len(parts) and (name == "lr" or _zeros(value) == _zeros(before))
        if len(inputs) != len(parts):
            inputs = self._inputs[name] = tuple([Tensor(np.zeros(())) for _ in parts])
        for tensor, part in zip(inputs, parts, strict=True):
            tensor.value = np.asarray(part)
        return same

    def __getitem__(self, name: str) -> Any:
        return self._fixed[name] if name in self._fixed else self._held[name]

    def __setitem__(self, name: str, value: Any) -> None:
        before, self._held = self._held.get(name), self.with_changes({name: value})
        self.version += 1
        if not self._is_input(name, before):
            self._version[...] = self.version

    def __delitem__(self, name: str) -> None:
        raise ArgumentError(f"numbers of an optimizer: got del of {name!r}; set it instead")

    def __iter__(self) -> Iterator[str]:
        yield from self._fixed
        yield from self._held

    def __len__(self) -> int:
        return len(self._fixed) + len(self._held)

    def __repr__(self) -> str:
        return repr(dict(self))


def _zeros(value: Any) -> list[bool]:
    """Which parts of a number are zero."""
    return [part == 0 for part in (value if isinstance(value, tuple) else (value,))]


def _traces() -> list[Any]:
    return [mode for mode in STATE.get().modes if mode.kind == "tracing"]
