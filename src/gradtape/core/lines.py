"""The line of the user's code that is running: the innermost frame outside gradtape."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from types import FrameType

# Frames of these libraries are not the user's either.
_LIBRARIES = frozenset({"numpy", "scipy", "optree", "functools", "contextlib"})
_OURS = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    "<__array_function__",
)


def is_ours(file: str) -> bool:
    """Whether a file is one of gradtape's."""
    return file.startswith(_OURS)


def user_frame() -> FrameType | None:
    """The frame of the user's code that is running; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_OURS):
            name: str = frame.f_globals.get("__name__", "")
            if name.partition(".")[0] not in _LIBRARIES:
                break
        frame = frame.f_back
    return frame


def user_line() -> str:
    """`file.py:12`, the line of the user's code that is running; "" if there is none."""
    frame = user_frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def later_warning(text: str, category: type[Warning]) -> Callable[[], None]:
    """A function that warns later at the line of the user's code that is running now."""
    frame = user_frame()
    if frame is None:
        return functools.partial(warnings.warn, text, category)
    file, line, names = frame.f_code.co_filename, frame.f_lineno, frame.f_globals
    module = names.get("__name__", "<unknown>")
    registry = names.setdefault("__warningregistry__", {})
    return functools.partial(
        warnings.warn_explicit, text, category, file, line, module=module, registry=registry
    )


def warn_user(text: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that is running."""
    level, frame, user = 1, sys._getframe(), user_frame()
    while frame is not None and frame is not user:
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(text, category, stacklevel=level)
