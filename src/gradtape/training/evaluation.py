"""Means of functions over a data set, such as the loss and the accuracy of a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any

from gradtape import containers
from gradtape.core.state import no_grad
from gradtape.errors import ArgumentError, ShapeError, a_type
from gradtape.nn.module import Module


def evaluate(
    model: Any, data: Any, functions: Mapping[str, Callable[[Any, Any], Any]]
) -> dict[str, float]:
    """Return means of functions over the batches of data, modules being in `eval`.

    Args:
        model: A module, or nested containers of arrays.
        data: A loader, or a list of batches.
        functions: `function(model, batch)` by name; each returns a number, the mean over the batch.

    Returns:
        The means by name. Each batch counts with the number of its items, which is the length of
        the first array in it.

    Raises:
        ArgumentError: There are no batches.

    >>> net = gt.nn.Linear(2, 1)
    >>> data = [(np.ones((4, 2), np.float32), np.zeros((4, 1), np.float32))]
    >>> loss = lambda net, batch: gt.mean((net(batch[0]) - batch[1]) ** 2)
    >>> gt.training.evaluate(net, data, {"loss": loss}).keys()
    dict_keys(['loss'])
    """
    if not isinstance(functions, Mapping):
        raise ArgumentError(
            f"evaluate: got {a_type(functions)}, expected functions by name: {{'loss': loss}}"
        )
    sums, count = dict.fromkeys(functions, 0.0), 0
    with no_grad(), _in_eval(model), closing(batches_of(data, 0)) as batches:
        for batch in batches:
            items = items_in(batch)
            for name, function in functions.items():
                sums[name] += items * number(function(model, batch), _named(name))
            count += items
    if not count:
        raise ArgumentError("evaluate: got no batches, expected at least one")
    return {name: total / count for name, total in sums.items()}


def _named(name: str) -> str:
    return "the loss" if name == "validation_loss" else f"the metric {name!r}"


def batches_of(data: Any, epoch: int, start: int = 0) -> Generator[Any, None, None]:
    """The batches of an epoch from one on, of a loader or of anything that can be iterated.

    Raises:
        ArgumentError: It cannot be iterated, or only once.
    """
    if callable(getattr(data, "epoch", None)):
        yield from data.epoch(epoch, start)
    else:
        check_batches(data)
        yield from islice(data, start, None)


def check_batches(data: Any) -> None:
    """Raise an ArgumentError for what is no source of batches, one for each epoch."""
    if callable(getattr(data, "epoch", None)):
        return
    got = f"{a_type(data)} as data"
    if hasattr(data, "__iter__") and iter(data) is data:
        got += ", which can be gone through once only"
    elif isinstance(data, tuple) and any(hasattr(one, "shape") for one in data):
        got = "a tuple of arrays as data"
    elif hasattr(data, "shape"):
        got = f"{a_type(data)} of shape {data.shape} as data"
    elif hasattr(data, "__iter__") and not isinstance(data, str | bytes | Mapping):
        if hasattr(data, "__len__") and not len(data):
            raise ArgumentError("fit: got no batches, expected at least one")
        return
    raise ArgumentError(
        f"fit: got {got}, expected a gt.data.DataLoader or a list of "
        "batches; for arrays: gt.data.DataLoader(gt.data.TensorDataset(x, y), 32, shuffle=True)"
    )


def items_in(batch: Any) -> int:
    """How many items a batch has: the length of its first array, or 1."""
    for leaf in containers.flatten(batch)[0]:
        if getattr(leaf, "shape", ()):
            return int(leaf.shape[0])
    return 1


def number(value: Any, what: str = "the loss") -> float:
    """A number that a loss or metric returned."""
    check_number(value, what)
    item = getattr(value, "item", None)
    found = value if item is None else item()
    if isinstance(found, bool | int | float):
        return float(found)
    raise ArgumentError(f"fit: {what} returned {a_type(value)}, expected a real number")


def check_number(value: Any, what: str) -> None:
    """Raise for what a loss or metric returned if it cannot be a number."""
    if value is None:
        raise ArgumentError(f"fit: {what} returned None, expected a number; is a return missing?")
    if isinstance(value, tuple | list | dict):
        raise ArgumentError(
            f"fit: {what} returned {a_type(value)}, expected one number; give others as metrics="
        )
    shape = getattr(value, "shape", ())
    if math.prod(shape) != 1:
        raise ShapeError(
            f"fit: {what} returned shape {shape}, expected a number; return gt.mean of it"
        )


@contextmanager
def _in_eval(model: Any) -> Iterator[None]:
    """Put all modules in evaluation, and back into what each was in."""
    before = [(one, one.training) for one in (model.modules() if isinstance(model, Module) else ())]
    try:
        for module, _ in before:
            module.training = False
        yield
    finally:
        for module, mode in before:
            module.training = mode
