"""Whether a module is in training: a flag that compiled functions notice when it changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.state import STATE


class TrainingFlag:
    """True or False, kept in an array: functions that read it while they are traced depend on it.

    One that was made while a function is traced, with the module that is its argument, is the same
    each time that the function is traced, so this function need not watch it.

    Args:
        on: Its value.
    """

    __slots__ = ("_array", "_on", "_since")

    def __init__(self, on: bool) -> None:
        self._on = on
        # Made when it is needed.
        self._array: Any = None
        modes = STATE.get().modes
        self._since = max([mode.number for mode in _tracing(modes)], default=0) if modes else 0

    def read(self) -> bool:
        """Its value."""
        modes = STATE.get().modes
        if modes:
            for mode in _tracing(modes):
                if mode.number > self._since:
                    if self._array is None:
                        self._array = np.array(self._on)
                    mode.depend_on(self._array)
        return self._on

    def is_of_outside(self) -> bool:
        """Whether a trace is in progress that began after the flag, and its module, were made."""
        modes = STATE.get().modes
        return bool(modes) and any(mode.number > self._since for mode in _tracing(modes))

    def write(self, on: bool) -> None:
        """Change it."""
        self._on = on
        if self._array is not None:
            self._array[...] = on

    def __deepcopy__(self, memo: Any) -> TrainingFlag:
        return TrainingFlag(self._on)


def _tracing(modes: tuple[Any, ...]) -> list[Any]:
    return [mode for mode in modes if mode.kind == "tracing"]
