"""Ways to run programs with loops and branches; all that compute the same have to agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gradtape as gt
from gradtape import containers
from random_control import ControlProgram, reduced

# Relative to the largest element of a result, by the dtype of the program.
TOLERANCES = {"float64": 1e-8, "float32": 4e-3}
BATCH = 3


class Subject:
    """A program with the functions and arguments that ways of running it use."""

    def __init__(self, program: ControlProgram) -> None:
        self.program = program
        self.values = program.function()
        self.loss = program.loss()
        self.argnums = program.floating
        self.arguments = program.arguments()
        rows = [program.arguments(number) for number in range(BATCH)]
        self.rows = rows
        self.batch = tuple(np.stack(column) for column in zip(*rows, strict=True))
        rng = np.random.default_rng(program.seed)
        self.direction = tuple(
            np.asarray(rng.uniform(-1, 1, np.shape(self.arguments[n])), program.dtype)[()]
            for n in self.argnums
        )

    @property
    def floats(self) -> tuple[Any, ...]:
        """The arguments to differentiate by."""
        return tuple(self.arguments[n] for n in self.argnums)

    def of_floats(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of these alone."""

        def of_floats(*floats: Any) -> Any:
            arguments = list(self.arguments)
            for n, value in zip(self.argnums, floats, strict=True):
                arguments[n] = value
            return function(*arguments)

        return of_floats

    def gradient(self, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """The gradient of the loss."""
        return gt.grad(self.loss if function is None else function, self.argnums)

    def slope(self, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """The derivative of the loss in a direction, as a function of floats."""
        loss = self.of_floats(self.loss if function is None else function)
        return lambda *floats: gt.jvp(loss, floats, self.direction)[1]

    def along(self, gradient: Callable[..., Any]) -> Callable[..., Any]:
        """The derivative of a gradient in a direction, as a function of floats."""
        function = self.of_floats(gradient)
        return lambda *floats: gt.jvp(function, floats, self.direction)[1]

    def batch_loss(self, *batch: Any) -> Any:
        """The sum of the losses of a batch."""
        return np.sum(gt.vmap(self.loss)(*batch))


def stacked(rows: Sequence[Any]) -> list[Any]:
    """Results of several calls as results of one call with batches."""
    leaves = [containers.flatten(row)[0] for row in rows]
    return [np.stack([np.asarray(x) for x in column]) for column in zip(*leaves, strict=True)]


Way = Callable[[Subject], Any]

REFERENCES: dict[str, Way] = {
    "value": lambda s: s.values(*s.arguments),
    "gradient": lambda s: s.gradient()(*s.arguments),
    "slope": lambda s: s.slope()(*s.floats),
    "curvature": lambda s: s.along(s.gradient())(*s.floats),
    "values": lambda s: stacked([s.values(*row) for row in s.rows]),
    "gradients": lambda s: stacked([s.gradient()(*row) for row in s.rows]),
}

WAYS: dict[str, tuple[str, Way]] = {
    "jit": ("value", lambda s: gt.jit(s.values)(*s.arguments)),
    "debug": ("value", lambda s: gt.jit(s.values, debug=True)(*s.arguments)),
    "vmap": ("values", lambda s: gt.vmap(s.values)(*s.batch)),
    "jit(vmap)": ("values", lambda s: gt.jit(gt.vmap(s.values))(*s.batch)),
    "vmap(jit)": ("values", lambda s: gt.vmap(gt.jit(s.values))(*s.batch)),
    "grad·v": (
        "slope",
        lambda s: sum(
            np.sum(g * v) for g, v in zip(s.gradient()(*s.arguments), s.direction, strict=True)
        ),
    ),
    "jit(grad)": ("gradient", lambda s: gt.jit(s.gradient())(*s.arguments)),
    "grad(jit)": ("gradient", lambda s: s.gradient(gt.jit(s.loss))(*s.arguments)),
    "debug(grad)": ("gradient", lambda s: gt.jit(s.gradient(), debug=True)(*s.arguments)),
    "jit(jvp)": ("slope", lambda s: gt.jit(s.slope())(*s.floats)),
    "jvp(jit)": ("slope", lambda s: s.slope(gt.jit(s.loss))(*s.floats)),
    "vmap(grad)": ("gradients", lambda s: gt.vmap(s.gradient())(*s.batch)),
    "jit(vmap(grad))": ("gradients", lambda s: gt.jit(gt.vmap(s.gradient()))(*s.batch)),
    "grad(vmap)": ("gradients", lambda s: gt.grad(s.batch_loss, s.argnums)(*s.batch)),
    "jit(grad(vmap))": ("gradients", lambda s: gt.jit(gt.grad(s.batch_loss, s.argnums))(*s.batch)),
    "grad(jvp)": (
        "curvature",
        lambda s: gt.grad(s.slope(), tuple(range(len(s.argnums))))(*s.floats),
    ),
    "jit(jvp(grad))": ("curvature", lambda s: gt.jit(s.along(s.gradient()))(*s.floats)),
    "jit(grad(jvp))": (
        "curvature",
        lambda s: gt.jit(gt.grad(s.slope(), tuple(range(len(s.argnums)))))(*s.floats),
    ),
    "jvp(grad(jit))": ("curvature", lambda s: s.along(s.gradient(gt.jit(s.loss)))(*s.floats)),
}


def difference(dtype: str, got: Any, expected: Any) -> str | None:
    """What is wrong with results; None if nothing is."""
    got, expected = containers.flatten(got)[0], containers.flatten(expected)[0]
    if len(got) != len(expected):
        return f"{len(got)} results instead of {len(expected)}"
    for k, (one, other) in enumerate(zip(got, expected, strict=True)):
        one, other = np.asarray(one), np.asarray(other)
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return f"result {k} is {one.dtype}{one.shape} instead of {other.dtype}{other.shape}"
        tolerance = TOLERANCES[dtype] if other.dtype.kind == "f" else 0.0
        scale = max(1.0, float(np.abs(other.astype(float)).max(initial=0)))
        if not np.allclose(one, other, rtol=0, atol=tolerance * scale):
            return f"result {k} is\n{one}\ninstead of\n{other}"
    return None


def wrong(program: ControlProgram, way: str) -> str | None:
    """What is wrong with a way to run a program; None if nothing is."""
    subject = Subject(program)
    reference, run = WAYS[way]
    with np.errstate(all="ignore"):
        expected = REFERENCES[reference](subject)
        try:
            got = run(subject)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return difference(program.dtype, got, expected)


def check(program: ControlProgram, way: str) -> None:
    """Fail with the smallest program found for which a way gives something else."""
    problem = wrong(program, way)
    if problem is None:
        return
    kind = problem.split(" ")[0]

    def fails(candidate: ControlProgram) -> bool:
        try:
            found = wrong(candidate, way)
        except Exception:
            return False
        return found is not None and found.split(" ")[0] == kind

    small = reduced(program, fails)
    raise AssertionError(
        f"program {program.seed} ({program.dtype}), {way}: {wrong(small, way)}\n{small.source}"
    )
