"""What is fed to the placeholders of a lazy graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, a_type


class Feeder:
    """Values for placeholders, to be used in any number of evaluations.

    >>> def program(ctx):
    ...     x, y = ctx.placeholder("x", ()), ctx.placeholder("y", (-1,))
    ...     feeder = gt.graph.Feeder().push(x, 2.0).push(y, np.arange(3.0))
    ...     return ctx.evaluator().push(x * y).set_feeder(feeder).run()
    >>> gt.run(program)
    [array([0., 2., 4.])]
    """

    def __init__(self) -> None:
        self._pairs: list[tuple[Tensor, Any]] = []

    def push(self, placeholder: Tensor, value: Any) -> Feeder:
        """Feed a value to a placeholder; one that is fed twice gets the last value.

        Args:
            placeholder: The placeholder.
            value: An array, or what NumPy makes one of.

        Returns:
            The feeder itself.

        Raises:
            ArgumentError: The first argument is not a tensor.
        """
        if not isinstance(placeholder, Tensor):
            raise ArgumentError(
                f"Feeder.push: got {a_type(placeholder)}, expected a placeholder and its value: "
                "push(x, value)"
            )
        self._pairs.append((placeholder, value))
        return self

    def __iter__(self) -> Iterator[tuple[Tensor, Any]]:
        return iter(self._pairs)


Feed = Feeder | Mapping[Tensor, Any] | None


def pairs_of(feed: Feed) -> list[tuple[Tensor, Any]]:
    """Placeholders and values as users give them.

    Raises:
        ArgumentError: They are given in another way.
    """
    if feed is None:
        return []
    if isinstance(feed, Mapping):
        return list(feed.items())
    if isinstance(feed, Feeder):
        return list(feed)
    raise ArgumentError(
        f"feed: got {a_type(feed)}, expected a dict or a gt.graph.Feeder; use feed={{x: value}}"
    )
