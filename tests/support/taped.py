"""Gradients by tapes with checkpoint configs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt


def gradient(
    program: Callable[[Any], Any], x: Any, config: gt.CheckpointConfig | None, **options: Any
) -> Any:
    """The gradient of a program by a tape that keeps what a config says."""
    tape = gt.GradientTape(checkpoint=config, **options)
    watched = tape.watch(x)
    return np.asarray(tape.gradient(program(watched), watched))
