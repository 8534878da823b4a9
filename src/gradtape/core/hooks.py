"""Hooks that add help to errors raised by core.

Core raises plain errors, and `gradtape.advice`, which is built on it, adds to them where functions
are made public. Some errors cannot wait that long: only the walk knows whose rule failed, and only
the frames that are running show which function was called by a name that people know.
"""

from __future__ import annotations

from collections.abc import Callable

from gradtape.core.op import Op
from gradtape.errors import ConversionError, GradtapeError


class Hooks:
    """Functions that may change an error before it is raised; without help they do nothing.

    Attributes:
        operand_refused: `operand_refused(error, name)`: an operand is not an array, or not an
            integer; the error begins with the name if no better one is known.
        rule_failed: `rule_failed(op, error)`: a derivative rule of the op raised the error.
        conversion_refused: `conversion_refused(error, recorded)`: a tensor refused to become an
            array or a number, because it is being recorded, or else because it has no value yet.
    """

    __slots__ = ("conversion_refused", "operand_refused", "rule_failed")

    def __init__(self) -> None:
        self.operand_refused: Callable[[GradtapeError, str | None], None] = lambda error, name: None
        self.rule_failed: Callable[[Op, GradtapeError], None] = lambda op, error: None
        self.conversion_refused: Callable[[ConversionError, bool], None] = lambda error, recorded: (
            None
        )


HOOKS = Hooks()
