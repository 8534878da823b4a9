"""Where in the user's code something happened: the innermost frame outside of gradtape."""

from __future__ import annotations

import os
import sys

# Frames of these are not the user's either.
_LIBRARIES = frozenset({"numpy", "scipy", "optree", "functools", "contextlib"})
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_line() -> str:
    """`file.py:12`, the line of the user's code that is running; "" if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        library = frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES
        ours = filename.startswith((_PACKAGE, "<__array_function__"))
        if not library and not ours:
            return f"{filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
