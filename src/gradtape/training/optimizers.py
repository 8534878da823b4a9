"""What a checkpoint says of an optimizer: its class and numbers, and its learning rate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gradtape.core.tensor import Tensor
from gradtape.optim.numbers import Numbers, plain

_PLAIN = (bool, int, float, complex, str, tuple, type(None))


def optimizers_in(optimizer: Any) -> Iterator[Any]:
    """An optimizer, and those that it is wrapped around."""
    yield optimizer
    for one in vars(optimizer).values():
        if _is_optimizer(one):
            yield from optimizers_in(one)


def holder_of(optimizer: Any) -> Any:
    """The optimizer with the numbers: that inside, if one is wrapped around another."""
    while not hasattr(optimizer, "defaults"):
        inner = [one for one in vars(optimizer).values() if _is_optimizer(one)]
        if len(inner) != 1:
            break
        optimizer = inner[0]
    return optimizer


def rate_of(optimizer: Any) -> float | None:
    """The learning rate, if it is a number that can be set."""
    rate = getattr(holder_of(optimizer), "defaults", {}).get("lr")
    return rate if isinstance(rate, float) else None


def changed_numbers(optimizer: Any) -> dict[str, Any]:
    """The numbers that were set since the optimizer was made, and the learning rate, by name.

    `OneCycleLR` sets momentum, or betas. Schedules and tensors cannot be saved, and are left out.
    """
    numbers = getattr(holder_of(optimizer), "defaults", {})
    first = getattr(numbers, "first", numbers)
    return {
        name: value
        for name, value in dict(numbers).items()
        if _is_plain(value) and (value != first[name] or (name == "lr" and type(value) is float))
    }


def numbers_with(optimizer: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of an optimizer that is set to what `changed_numbers` told.

    Raises:
        ArgumentError: They are no numbers of this optimizer, or out of range.
    """
    numbers = getattr(holder_of(optimizer), "defaults", {})
    if not isinstance(numbers, Numbers):
        return dict(changes)
    again = {name: numbers.first[name] for name in changed_numbers(optimizer)}
    return numbers.with_changes({**again, **changes})


def set_numbers(optimizer: Any, wanted: Mapping[str, Any]) -> None:
    """Set the numbers that are not as they are wanted."""
    numbers = getattr(holder_of(optimizer), "defaults", {})
    for name, value in wanted.items():
        if numbers[name] is not value and numbers[name] != value:
            numbers[name] = value


def described_optimizer(optimizer: Any) -> list[str]:
    """An optimizer in lines of text: its class and its numbers, and those of one inside.

    A learning rate that is a number is left out, since schedulers change it; other numbers are
    those that it was made with, unless they are schedules.
    """
    held = vars(optimizer)
    # One that is wrapped around another has the numbers of that.
    wraps = any(map(_is_optimizer, held.values()))
    own = {} if wraps else getattr(optimizer, "defaults", {})
    first = getattr(own, "first", own)
    numbers = {**held, **own, **{name: first[name] for name in own if _is_plain(own[name])}}
    if own and isinstance(own.get("lr"), float):
        del numbers["lr"]
    lines = [type(optimizer).__qualname__]
    groups = getattr(optimizer, "param_groups", None)
    if groups:
        lines.append(f"made with groups of {', '.join(str(len(g['params'])) for g in groups)}")
    for name, given in sorted(numbers.items()):
        value = plain(given) if isinstance(given, Tensor) else given
        if _is_optimizer(value):
            lines += [f"{name}: {line}" for line in described_optimizer(value)]
        elif name[0] != "_" and (callable(value) or isinstance(value, _PLAIN)):
            lines.append(f"{name}={_text(value)}")
    return lines


def _is_optimizer(value: Any) -> bool:
    return callable(getattr(value, "init", None)) and callable(getattr(value, "apply", None))


def _is_plain(value: Any) -> bool:
    """Whether `json` can write a number of an optimizer, or the numbers."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, bool | int | float | str)


def _text(value: Any) -> str:
    """A number or a schedule as text, of functions the name; without addresses, which change."""
    own = getattr(value, "__qualname__", None)
    text = repr(value) if own is None else f"{value.__module__}.{own}"
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", text)
