"""Code as people have it, with one import line changed or none; and calls on plain arrays."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import autograd
import autograd.numpy
import numpy as np
import scipy.special

import gradtape as gt
import gradtape.numpy
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings
from benchmarks.result import OURS, Row, compare
from gradtape.compat import autograd as compat

STEPS = 20


def _turned(xp: ModuleType, x: Any) -> Any:
    """A vector turned by an angle, with the matrix written down."""
    c, s = xp.cos(x[0]), xp.sin(x[0])
    return xp.sum(xp.dot(xp.array([[c, -s], [s, c]]), x) ** 2 * x[1])


def _swung(xp: ModuleType, x: Any) -> Any:
    """A pendulum after some steps, with its slopes written as an array."""
    state = x
    for _ in range(STEPS):
        state = state + 0.01 * xp.array([state[1], -9.81 * xp.sin(state[0])])
    return xp.sum(state**2)


def run(settings: Settings) -> Iterator[Row]:
    """Time gradients of programs that make arrays of tracked numbers, and calls on plain arrays."""
    x = np.array([0.3, 1.5])
    for name, program in (("rotation", _turned), (f"pendulum, {STEPS} steps", _swung)):
        theirs = autograd.grad(lambda x, f=program: f(autograd.numpy, x))
        ways = {
            f"{name}, gradtape.numpy": gt.grad(lambda x, f=program: f(gradtape.numpy, x)),
            f"{name}, NumPy as it is": gt.grad(lambda x, f=program: f(np, x)),
            f"{name}, compat.autograd": compat.grad(lambda x, f=program: f(compat.numpy, x)),
        }
        for way, gradient in ways.items():
            assert_agree(way, gradient(x), theirs(x))
            yield from compare(
                way,
                f"gradient of a {name}, arrays of tracked numbers, by {way.rpartition(', ')[2]}",
                Contender(OURS, "f(x)", {"f": gradient, "x": x}),
                [(Contender("HIPS autograd", "f(x)", {"f": theirs, "x": x}), None)],
                settings,
            )
    yield from _plain_calls(settings)


def _plain_calls(settings: Settings) -> Iterator[Row]:
    """Time functions on plain arrays through gradtape's modules against the originals."""
    x = np.linspace(1.0, 2.0, 10)
    calls = {
        "np.sum": (gradtape.numpy.sum, np.sum),
        "np.tanh": (gradtape.numpy.tanh, np.tanh),
        "scipy.special.gammaln": (gt.scipy.special.gammaln, scipy.special.gammaln),
    }
    for name, (ours, original) in calls.items():
        assert_agree(name, ours(x), original(x), rtol=0.0)
        yield from compare(
            f"{name}, plain array",
            f"`{name}` of a plain array of {x.size} elements through gradtape",
            Contender(OURS, "f(x)", {"f": ours, "x": x}),
            [(Contender("the original", "f(x)", {"f": original, "x": x}), None)],
            settings,
        )
