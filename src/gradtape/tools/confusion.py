"""Confusion matrices: how often items of each class were taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError, NonFiniteError, ShapeError
from gradtape.tools.text_table import aligned


class ConfusionMatrix:
    """How often items of each class were taken for which class; `print` shows a table.

    Args:
        labels: The classes of items, integers from 0.
        predictions: The classes that were predicted; or a row of scores for each item, of which the
            largest counts.
        classes: The names of classes; their numbers if None.

    Attributes:
        counts: How many items of a class (row) were taken for which (column).
        classes: The names of classes.

    Raises:
        ArgumentError: There are no items, or a label is not one of the classes.
        DTypeError: Labels are no integers.
        NonFiniteError: A score is NaN.
        ShapeError: Labels and predictions do not belong together, or scores have one column.

    >>> matrix = gt.ConfusionMatrix([0, 0, 1, 2], [0, 1, 1, 2], classes=["cat", "dog", "owl"])
    >>> print(matrix)
    actual  cat  dog  owl  accuracy
    cat       1    1    0  50.0%
    dog       0    1    0  100.0%
    owl       0    0    1  100.0%
    3 of 4 items are right, 75.0%
    """

    def __init__(
        self, labels: Any, predictions: Any, *, classes: Sequence[Any] | None = None
    ) -> None:
        actual, found = _values(labels), _values(predictions)
        count = found.shape[1] if found.ndim == 2 else 0
        if found.ndim == 2:
            found = _best(found)
        if actual.ndim != 1 or actual.shape != found.shape:
            raise ShapeError(
                f"ConfusionMatrix: got labels of shape {actual.shape} and predictions of shape "
                f"{_values(predictions).shape}, expected (n,) and (n,) or (n, classes)"
            )
        if not actual.size:
            raise ArgumentError("ConfusionMatrix: got no items, expected at least one")
        for what, array in (("labels", actual), ("predictions", found)):
            if array.dtype.kind not in "iub":
                raise DTypeError(
                    f"ConfusionMatrix: got {what} of {array.dtype}, expected integers; predictions "
                    "may be scores of shape (n, classes)"
                )
        highest = int(max(actual.max(), found.max()))
        count = len(classes) if classes is not None else max(count, highest + 1)
        if min(actual.min(), found.min()) < 0 or highest >= count:
            lowest = int(min(actual.min(), found.min()))
            raise ArgumentError(
                f"ConfusionMatrix: got classes from {lowest} to {highest}, expected 0 to "
                f"{count - 1}"
            )
        pairs = actual.astype(np.int64) * count + found.astype(np.int64)
        self.counts = np.bincount(pairs, minlength=count * count).reshape(count, count)
        self.classes = tuple(
            [str(n) for n in range(count)] if classes is None else map(str, classes)
        )

    @property
    def accuracy(self) -> float:
        """The part of the items that is right."""
        return float(np.trace(self.counts) / self.counts.sum())

    @property
    def recall(self) -> Any:
        """For each class, the part of its items that is right; NaN if it has none."""
        return _parts(np.diag(self.counts), self.counts.sum(1))

    @property
    def precision(self) -> Any:
        """For each class, the part of what was taken for it that is of it; NaN if nothing was."""
        return _parts(np.diag(self.counts), self.counts.sum(0))

    def most_confused(self, count: int = 10) -> list[tuple[str, str, int]]:
        """The pairs that were confused most often: actual class, prediction, how often.

        Args:
            count: How many pairs at most.

        >>> gt.ConfusionMatrix([0, 0, 1, 1], [1, 1, 0, 1]).most_confused()
        [('0', '1', 2), ('1', '0', 1)]
        """
        wrong = self.counts - np.diag(np.diag(self.counts))
        order = np.argsort(-wrong, axis=None, kind="stable")[:count]
        places = [divmod(int(place), len(self.classes)) for place in order if wrong.flat[place]]
        return [(self.classes[a], self.classes[b], int(wrong[a, b])) for a, b in places]

    def __str__(self) -> str:
        rows = [("actual", *self.classes, "accuracy")]
        for name, counts, part in zip(self.classes, self.counts, self.recall, strict=True):
            rows.append((name, *map(str, counts), "" if np.isnan(part) else f"{part:.1%}"))
        right, total = int(np.trace(self.counts)), int(self.counts.sum())
        return f"{aligned(rows)}\n{right} of {total} items are right, {self.accuracy:.1%}"


def _best(scores: Any) -> Any:
    """The class with the highest score of each item."""
    if scores.shape[1] < 2:
        raise ShapeError(
            f"ConfusionMatrix: got scores of shape {scores.shape}, expected a column for each of "
            "two classes or more; with one for both, give (scores[:, 0] > 0).astype(int)"
        )
    if np.isnan(scores).any():
        item = np.flatnonzero(np.isnan(scores).any(axis=1))[0]
        raise NonFiniteError(
            f"ConfusionMatrix: got NaN among the scores of item {item}, which has no highest one; "
            "look for NaN in the model"
        )
    return scores.argmax(1)


def _values(given: Any) -> Any:
    return given.detach().numpy() if isinstance(given, Tensor) else np.asarray(given)


def _parts(some: Any, of: Any) -> Any:
    return np.where(of > 0, some / np.maximum(of, 1), np.nan)
