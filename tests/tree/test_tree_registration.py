"""gt.tree.register: classes that become containers, by functions or by methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError

W = np.array([[1.0, 2.0], [3.0, 4.0]])


class Line:
    def __init__(self, slope: Any, offset: Any, name: Any = "line") -> None:
        self.slope, self.offset, self.name = slope, offset, name


def test_registered_classes() -> None:
    made = gt.tree.register(
        Line,
        lambda line: ((line.slope, line.offset), line.name, ("slope", "offset")),
        lambda name, parts: Line(*parts, name),
    )
    assert made is Line
    found = gt.grad(lambda line: np.sum(line.slope * 3.0) + line.offset)(Line(W, 1.0, "a"))
    assert found.name == "a"
    np.testing.assert_array_equal(found.slope, np.full_like(W, 3.0))
    with pytest.raises(DTypeError, match=r"argument 0\.offset is a str"):
        gt.grad(lambda line: line.slope)(Line(1.0, "x"))
    assert [str(path) for path, _ in gt.tree.leaves_with_path(Line(1.0, 2.0))] == [
        ".slope",
        ".offset",
    ]
    # Without names, children are numbered.
    gt.tree.register(Line, lambda line: ([line.slope], None), lambda _, p: Line(*p, None))
    assert gt.tree.leaves(Line(1.0, 2.0)) == [1.0]


def test_the_decorator() -> None:
    @gt.tree.register
    class Ball:
        def __init__(self, center: Any, radius: Any, colour: str) -> None:
            self.center, self.radius, self.colour = center, radius, colour

        def tree_flatten(self) -> Any:
            return (self.center, self.radius), self.colour

        @classmethod
        def tree_unflatten(cls, colour: str, parts: Any) -> Ball:
            return cls(*parts, colour)

    ball = Ball(np.ones(2), 3.0, "red")
    step = gt.jit(gt.grad(lambda ball: np.sum(ball.center) * ball.radius**2))
    slope = step(ball)
    assert type(slope) is Ball
    assert slope.colour == "red"
    assert slope.radius == 12.0
    np.testing.assert_array_equal(slope.center, [9.0, 9.0])
    assert gt.tree.structure(ball) != gt.tree.structure(Ball(0, 0, "blue"))


def test_registering_overrides_fields() -> None:
    @dataclass
    class Local:
        w: Any

    assert len(gt.tree.leaves([Local(W)])) == 1
    gt.tree.register(Local, lambda p: ((), None), lambda _, __: Local(None))
    assert gt.tree.leaves([Local(W)]) == []


def test_what_cannot_be_registered() -> None:
    for cls, text in ((list, "by itself"), (3, "an int"), (np.ndarray, "a class of arrays")):
        with pytest.raises(ArgumentError, match=text):
            gt.tree.register(cls, tuple, tuple)  # type: ignore[arg-type, type-var]
    with pytest.raises(ArgumentError, match="unflatten"):
        gt.tree.register(Line, tuple)

    class Bare:
        pass

    with pytest.raises(ArgumentError, match=r"got Bare alone, .* tree_flatten and tree_unflatten"):
        gt.tree.register(Bare)
