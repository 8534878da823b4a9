"""Functions made from one declaration behave as if each had been written by itself."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import UnsupportedError
from gradtape.ops.family import by_rank, member
from gradtape.ops.shared_options import options, section


def _scaled(name: str, rank: int, x: Any, y: Any = 2, /, factor: float = 3.0, *, shift: int = 0):
    """{Doubled} {things} of shape ({sizes}), of {name}.

    Args:
        factor: By how much.

    1d:
    >>> one = 1

    2d:
    >>> two = 2

    least2d:
    >>> least = 2
    """
    return name, rank, x, y, factor, shift


most1d, most2d, most3d = by_rank("most", _scaled, Doubled="Twice")
(least2d,) = by_rank("least", _scaled, (2,), Doubled="Half")


def _named(name: str, x: Any, /, *, option: int) -> Any:
    return name, x, option


alone = member("alone", _named)


def test_arguments_arrive():
    assert most1d(1) == ("most1d", 1, 1, 2, 3.0, 0)
    assert most3d(1, 5, 6.0, shift=7) == ("most3d", 3, 1, 5, 6.0, 7)
    assert least2d(1, factor=4.0) == ("least2d", 2, 1, 2, 4.0, 0)
    assert alone(1, option=2) == ("alone", 1, 2)


def test_identity():
    assert (most2d.__name__, most2d.__qualname__, most2d.__module__) == (
        ("most2d", "most2d", __name__)
    )
    assert str(inspect.signature(most2d)) == (
        "(x: 'Any', y: 'Any' = 2, /, factor: 'float' = 3.0, *, shift: 'int' = 0)"
    )
    assert inspect.getsourcefile(most2d) == __file__
    assert inspect.getsource(most2d).startswith("def _scaled(")


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, r"most2d\(\) missing 1 required positional argument: 'x'"),
        ((1, 2, 3, 4), {}, r"most2d\(\) takes from 1 to 3 positional arguments but 4 were given"),
        ((1,), {"axis": 0}, r"most2d\(\) got an unexpected keyword argument 'axis'"),
        ((1,), {"rank": 0}, r"most2d\(\) got an unexpected keyword argument 'rank'"),
    ],
)
def test_wrong_calls(args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        most2d(*args, **kwargs)


def test_docstrings():
    lines = ["{} of shape ({}), of {}.", "", "Args:", "    factor: By how much.", ""]
    text = "\n".join(lines)
    assert most1d.__doc__ == text.format("Twice sequences", "length", "most1d") + "\n>>> one = 1"
    assert (
        most2d.__doc__ == text.format("Twice images", "height, width", "most2d") + "\n>>> two = 2"
    )
    assert least2d.__doc__ == (
        text.format("Half images", "height, width", "least2d") + "\n>>> two = 2\n\n>>> least = 2"
    )
    assert ">>>" not in most3d.__doc__
    assert alone.__doc__ is None


def test_public_functions():
    for function in (gt.nn.conv2d, gt.nn.min_pool3d, gt.fft.ifft):
        assert pickle.loads(pickle.dumps(function)) is function
    with pytest.raises(UnsupportedError, match=r"conv2d: got pad=, expected weight=, .*groups=;"):
        gt.nn.conv2d(np.ones((1, 2, 2)), np.ones((1, 1, 1, 1)), pad=1)


# ---- options that functions share ---------------------------------------------------------------

TABLE = {"axis": "Along which axis.", "keepdims": "Whether it stays.", "x": "Numbers."}


def test_options_are_added_in_order():
    @options({"axis": "First."}, TABLE, raises={"AxisError": "No axis."})
    def function(x, /, axis=0, other=1, *, keepdims=False):
        """One.

        Two.

        Args:
            other: Of its own,
                in two lines.

        Raises:
            ShapeError: No shape.

        >>> 1
        1
        """

    assert function.__doc__ == inspect.cleandoc(
        """One.

        Two.

        Args:
            x: Numbers.
            axis: First.
            other: Of its own,
                in two lines.
            keepdims: Whether it stays.

        Raises:
            AxisError: No axis.
            ShapeError: No shape.

        >>> 1
        1
        """
    )


def test_sections_are_made():
    @options(TABLE, raises={"AxisError": "No axis."})
    def function(axis=0):
        """One.

        Returns:
            A number.

        >>> 1
        1
        """

    assert function.__doc__ == inspect.cleandoc(
        """One.

        Args:
            axis: Along which axis.

        Returns:
            A number.

        Raises:
            AxisError: No axis.

        >>> 1
        1
        """
    )


def test_long_lines_are_wrapped():
    @options({"axis": "word " * 40 + "end"})
    def function(axis=0):
        """One."""

    *_, first, second, third = function.__doc__.split("\n")
    assert first.startswith("    axis: word word")
    assert len(first) <= 96
    assert second.startswith("        word")
    assert third.endswith("word end")


def test_attributes_come_before_errors():
    @options(TABLE, attributes={"weight": "A parameter."}, raises={"AxisError": "No axis."})
    class Layer:
        """One."""

        def __init__(self, axis=0): ...

    assert Layer.__doc__ == inspect.cleandoc(
        """One.

        Args:
            axis: Along which axis.

        Attributes:
            weight: A parameter.

        Raises:
            AxisError: No axis.
        """
    )


def test_sections_are_read():
    @options({"axis": "word " * 40 + "end"}, raises={"AxisError": "No axis: none."})
    def function(axis=0):
        """One."""

    assert section(function, "Args") == {"axis": "word " * 40 + "end"}
    assert section(function, "Raises") == {"AxisError": "No axis: none."}
    assert section(function, "Returns") == section(object(), "Args") == {}


def test_without_docstrings():
    def function(axis=0): ...

    assert options(TABLE)(function).__doc__ is None
