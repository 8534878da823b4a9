"""Calls of NumPy's functions on samples that can be made of anything: floats, tensors, objects."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from gradtape import containers
from numpy_page import functions
from numpy_samples import GENERAL, LIKE, NO_ARRAYS, SAMPLES

POINT = np.concatenate(
    [
        [0.25, 0.5, 0.75, 0.625, 0.55, 0.35, 0.85, 0.125, 0.6, 0.375],
        [2.0, 0.5, 0.3, 0.45, 3.0, 0.15, 0.2, 0.175, 1.1],
    ]
)
_SKIPPED = {"np.save", "np.savetxt", "np.savez", "np.savez_compressed", "np.info", *LIKE}

Make = Callable[[Any], Any]


class Numbers:
    """The samples of functions, made of 19 numbers; see `numpy_samples.Samples`."""

    def __init__(self, p: Any, make: Make) -> None:
        self.v = make([p[k] for k in range(4)])
        self.m = make([[p[4 + 3 * i + k] for k in range(3)] for i in range(2)])
        # Symmetric, as some functions read one triangle only.
        self.s = make([[p[10 + 3 * max(i, k) + min(i, k)] for k in range(3)] for i in range(3)])
        self.z = make([p[0], p[1], p[2]])
        self.i = np.array([1, 0, 2, 1])
        self.b = np.array([True, False, True, True])


def floats(values: Any) -> Any:
    """An array of floats; its shape is that of the nested lists."""
    return np.array(values, dtype=float)


def _calls() -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    found = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, function in functions():
            if name in NO_ARRAYS or name in _SKIPPED:
                continue
            for trial in (SAMPLES[name],) if name in SAMPLES else GENERAL:
                try:
                    flat(trial(function, Numbers(POINT, floats)))  # type: ignore[arg-type]
                except Exception:
                    continue
                found[name] = (trial, function)
                break
    return found


def flat(out: Any) -> Any:
    """All numbers of a result, in one vector."""
    leaves = [
        leaf
        for leaf in containers.flatten(out)[0]
        if isinstance(leaf, gt.Tensor | np.ndarray) or np.isscalar(leaf)
    ]
    numbers = [leaf for leaf in leaves if not isinstance(leaf, str | bytes)]
    return np.concatenate([np.ravel(leaf) for leaf in numbers]) if numbers else np.zeros(0)


def call(name: str, p: Any, make: Make, function: Callable[..., Any] | None = None) -> Any:
    """What a function of NumPy, or another in its place, gives for samples made of numbers."""
    trial, original = CALLS[name]
    return trial(function or original, Numbers(p, make))


def by_floats(name: str, p: Any) -> Any:
    """What it gives for floats, in one vector of complex numbers."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return flat(call(name, p, floats)).astype(complex)


def slopes(name: str, direction: Any) -> Any:
    """Its derivative along a direction by central differences."""
    h = 1e-6
    above, below = (by_floats(name, POINT + step * direction) for step in (h, -h))
    return (above - below) / (2 * h)


# For each function of NumPy, the first sample call that floats take, and the function.
CALLS = _calls()
