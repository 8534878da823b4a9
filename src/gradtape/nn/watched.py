"""What compiled functions notice of a module from outside: its mode, and changes of its parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.state import STATE


class Watched:
    """Whether a module is in training, and how often its attributes have been replaced.

    Both are kept in an array: functions that read it while they are traced depend on it. One that
    was made while a function is traced, with the module that is its argument, is the same each time
    that the function is traced, so this function need not watch it.

    Args:
        training: Whether the module is in training.
    """

    __slots__ = ("_array", "_since", "_training")

    def __init__(self, training: bool) -> None:
        self._training = training
        # Made when it is needed.
        self._array: Any = None
        modes = STATE.get().modes
        self._since = max([mode.number for mode in _tracing(modes)], default=0) if modes else 0

    def watch(self) -> None:
        """Let functions that are being traced depend on it."""
        for mode in _tracing(STATE.get().modes):
            if mode.number > self._since:
                if self._array is None:
                    self._array = np.array([self._training, 0])
                mode.depend_on(self._array)

    def is_training(self) -> bool:
        """Whether the module is in training."""
        if STATE.get().modes:
            self.watch()
        return self._training

    def set_training(self, training: bool) -> None:
        """Put it into training or evaluation."""
        self._training = training
        if self._array is not None:
            self._array[0] = training

    def note_change(self) -> None:
        """Note that an attribute was replaced, unless a function that is being traced does so."""
        if self._array is not None and not self.is_of_outside():
            self._array[1] += 1

    def is_of_outside(self) -> bool:
        """Whether a trace is in progress that began after the module was made."""
        modes = STATE.get().modes
        return bool(modes) and any(mode.number > self._since for mode in _tracing(modes))

    def __deepcopy__(self, memo: Any) -> Watched:
        return Watched(self._training)


def _tracing(modes: tuple[Any, ...]) -> list[Any]:
    return [mode for mode in modes if mode.kind == "tracing"]
