"""Ctrl-C at chosen points of a program.

CPython looks for signals when a function starts, after calls and when a loop jumps back. A tracer
stops at these points of gradtape's own code and raises KeyboardInterrupt at the one asked for, so
that every point can be tried without waiting for luck.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import gradtape

_HOME = os.path.dirname(gradtape.__file__)
_LOOKS_FOR_SIGNALS = ("CALL", "RESUME", "JUMP_BACKWARD")


class Interrupter:
    """Raises at point number `at`, counted from 0; counts the points it passes."""

    def __init__(self, at: int, files: tuple[str, ...]) -> None:
        self.points = 0
        self._at = at
        self._files = tuple(os.path.join(_HOME, name) for name in files)
        # By id: a frame that is held would hold what Python has dropped.
        self._last: dict[int, str] = {}
        # Python 3.12 tells of opcodes only if a frame had asked for it before `settrace`.
        sys._getframe().f_trace_opcodes = True

    def __call__(self, frame: FrameType, event: str, _arg: Any) -> Any:
        """The function that `sys.settrace` takes."""
        if not frame.f_code.co_filename.startswith(self._files):
            return None
        frame.f_trace_opcodes = True
        # Without a line, a generator is being closed: Python 3.14 ignores what is raised there.
        if event == "opcode" and frame.f_lineno is not None:
            if self._last.get(id(frame), "").startswith(_LOOKS_FOR_SIGNALS):
                self.points += 1
                if self.points == self._at + 1:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            self._last[id(frame)] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        elif event in ("call", "return"):
            self._last.pop(id(frame), None)
        return self


def interrupted_everywhere(
    program: Callable[[], Any], *files: str, every: int = 1
) -> Iterator[int]:
    """Run a program again and again, interrupted at each of its points in turn.

    Args:
        program: What to interrupt.
        *files: Files or directories of gradtape, relative to the package; points elsewhere are
            left out.
        every: Try only each of so many points.

    Yields:
        The number of the point, after the program was interrupted there.
    """
    at = 0
    while True:
        interrupter = Interrupter(at, files)
        previous = sys.gettrace()
        sys.settrace(interrupter)
        try:
            program()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(previous)
        if interrupter.points <= at:
            return
        yield at
        at += every
