"""What a checkpoint says of an optimizer: its class and numbers, and its learning rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


def described_optimizer(optimizer: Any) -> list[str]:
    """An optimizer in lines of text: its class and its numbers, and those of one inside.

    A learning rate that is a number is left out: schedulers change it.
    """
    held = vars(optimizer)
    # One that is wrapped around another has the numbers of that.
    wraps = any(map(_is_optimizer, held.values()))
    own = {} if wraps else getattr(optimizer, "defaults", {})
    numbers = {**held, **own}
    if own and isinstance(numbers.get("lr"), float):
        del numbers["lr"]
    lines = [type(optimizer).__qualname__]
    groups = getattr(optimizer, "param_groups", None)
    if groups:
        lines.append(f"made with groups of {', '.join(str(len(g['params'])) for g in groups)}")
    for name, value in sorted(numbers.items()):
        if _is_optimizer(value):
            lines += [f"{name}: {line}" for line in described_optimizer(value)]
        elif name[0] != "_" and (callable(value) or isinstance(value, _PLAIN)):
            lines.append(f"{name}={_text(value)}")
    return lines


def _is_optimizer(value: Any) -> bool:
    return callable(getattr(value, "init", None)) and callable(getattr(value, "apply", None))


def _text(value: Any) -> str:
    """A number or a schedule as text; of functions the name, as addresses change."""
    own = getattr(value, "__qualname__", None)
    return repr(value) if own is None else f"{value.__module__}.{own}"
