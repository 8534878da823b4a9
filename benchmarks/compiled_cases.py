"""What the compiled benchmarks measure: every case with its arrays, its peers and their bars."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.compiled_functions import CLASSES
from benchmarks.loop_functions import RK4_STEPS

Arrays = dict[str, Any]
"""Arguments by name: arrays, or tuples or dicts of them."""
Bars = Mapping[str, float | None]
"""For each peer the smallest ratio peer / ours that meets the goal; None: for information."""


@dataclass(frozen=True, slots=True)
class Case:
    """One workload: what is computed of which arrays, and what the ratios have to reach."""

    name: str
    kind: str
    """Key of the function in `compiled_functions.KINDS`."""
    what: str
    make: Callable[[np.random.Generator], Arrays]
    rtol: float
    """How far a result may be from that of float64, relative to the largest entry."""
    bars: Bars

    def arrays(self) -> Arrays:
        """Make the arguments, the same in every process."""
        return self.make(np.random.default_rng(0))


def _normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * rng.normal(size=shape)).astype(np.float32)


def _jax(bar: float) -> Bars:
    """Hold a bar against both ways in which JAX can dispatch; neither is always the faster."""
    return {"jax": bar, "jax-sync": bar}


def _chain(dtype: type, n: int, power: str, bars: Bars) -> Case:
    name = np.dtype(dtype).name
    return Case(
        f"chain, {name}, 10{power}",
        "chain",
        f"`tanh(a*x+b)*exp(-x*x)+log1p(abs(x))`, {name}, n = 10{power}",
        lambda rng: {"x": rng.normal(size=n).astype(dtype)},
        5e-6 if dtype is np.float32 else 1e-12,
        bars,
    )


_SHORT_CHAIN = {**_jax(2.0), "numpy": 1.0}
_LONG_CHAIN = {**_jax(2.0), "numpy": 2.0, "torch-compile": 2.0}
CHAIN = tuple(
    case
    for dtype in (np.float32, np.float64)
    for case in (
        _chain(dtype, 1_000, "³", _SHORT_CHAIN),
        _chain(dtype, 100_000, "⁵", _LONG_CHAIN),
        _chain(dtype, 10_000_000, "⁷", _LONG_CHAIN),
    )
)


def _regression(rng: np.random.Generator) -> Arrays:
    shapes = {"w1": (2, 16), "b1": (16,), "w2": (16, 1), "b2": (1,), "x": (8, 2), "y": (8, 1)}
    return {name: _normal(rng, *shape) for name, shape in shapes.items()}


def _regression_dict(rng: np.random.Generator) -> Arrays:
    params = _regression(rng)
    return {"x": params.pop("x"), "y": params.pop("y"), "params": params}


_REGRESSION = "perceptron 2-16-1, float32, batch of 8, value + gradient + SGD"
SMALL = (
    Case(
        "small step",
        "regression",
        f"{_REGRESSION}, parameters as arguments",
        _regression,
        1e-5,
        {**_jax(20.0), "torch": None},
    ),
    Case(
        "small step, dict",
        "regression, dict",
        f"{_REGRESSION}, parameters in a dict",
        _regression_dict,
        1e-5,
        _jax(20.0),
    ),
    Case(
        "Rosenbrock",
        "rosenbrock",
        "Rosenbrock's function, float64, n = 10, value + gradient",
        lambda rng: {"x": rng.normal(size=10)},
        1e-12,
        {**_jax(10.0), "jax-numpy": None, "torch": 50.0},
    ),
    Case(
        "call",
        "add",
        "`x + y`, float64, 10 elements, against `np.add(x, y)`",
        lambda rng: {"x": rng.normal(size=10), "y": rng.normal(size=10)},
        0.0,
        {"numpy": 0.5},
    ),
)

ROWS, COLUMNS = 2048, 1024
_FORWARD_BACKWARD = f"of {ROWS}×{COLUMNS}, float32, forward + backward"
_ROW_WISE = {**_jax(1.0), "torch": 1.0, "torch-compile": None}
ROW_WISE = (
    Case(
        "softmax",
        "softmax",
        f"softmax {_FORWARD_BACKWARD}",
        lambda rng: {"x": _normal(rng, ROWS, COLUMNS), "g": _normal(rng, ROWS, COLUMNS)},
        5e-6,
        _ROW_WISE,
    ),
    Case(
        "layer norm",
        "layer norm",
        f"layer norm {_FORWARD_BACKWARD}, with scale and shift",
        lambda rng: {
            "x": _normal(rng, ROWS, COLUMNS),
            "gamma": _normal(rng, COLUMNS),
            "beta": _normal(rng, COLUMNS),
            "g": _normal(rng, ROWS, COLUMNS),
        },
        1e-5,
        _ROW_WISE,
    ),
)


def _classifier(rng: np.random.Generator) -> Arrays:
    """Make a classifier in the midst of its training.

    Its second moments are well above zero: from zero Adam divides a gradient by its own size, which
    turns the rounding error of a small one into a whole step.
    """
    shapes = (784, 128), (128,), (128, CLASSES), (CLASSES,)
    return {
        "params": tuple(_normal(rng, *shape, scale=0.05) for shape in shapes),
        "state": {
            "step": np.int64(100),
            "mean": tuple(_normal(rng, *shape, scale=1e-3) for shape in shapes),
            "square": tuple(
                np.float32(1e-4) + np.abs(_normal(rng, *shape, scale=1e-4)) for shape in shapes
            ),
        },
        "x": rng.uniform(size=(32, 784)).astype(np.float32),
        "labels": rng.integers(0, CLASSES, 32, dtype=np.int32),
    }


_STEP = "perceptron 784-128-10, float32, batch of 32, cross-entropy, gradient + Adam"
TRAINING = (
    Case(
        "training step",
        "classifier",
        _STEP,
        _classifier,
        1e-5,
        {**_jax(1.2), "torch-compile": 1.2, "torch": None},
    ),
)
COMPILE_TIME = Case(
    "compile time",
    "classifier",
    f"{_STEP}: the first call less a later one, fresh processes, nothing cached",
    _classifier,
    1e-5,
    {"jax": 1.0, "torch-compile": 10.0},
)


def _pendulum(rng: np.random.Generator) -> Arrays:
    return {
        "start": np.array([1.0, 0.5, 0.0, 0.1]),
        "params": np.array([1.0, 0.7, 1.2, 0.8]),
        "observed": rng.normal(size=(RK4_STEPS, 4)),
    }


STEPS, HIDDEN, BATCH = 64, 128, 16


def _lstm(rng: np.random.Generator) -> Arrays:
    scale = HIDDEN**-0.5
    return {
        "wx": _normal(rng, HIDDEN, 4 * HIDDEN, scale=scale),
        "wh": _normal(rng, HIDDEN, 4 * HIDDEN, scale=scale),
        "bias": _normal(rng, 4 * HIDDEN, scale=scale),
        "xs": _normal(rng, STEPS, BATCH, HIDDEN),
        "g": _normal(rng, STEPS, BATCH, HIDDEN),
    }


def _kalman(rng: np.random.Generator) -> Arrays:
    """Make two positions with their velocities, of which the positions are observed."""
    return {
        "transition": np.eye(4) * 0.95 + 0.1 * np.eye(4, k=2),
        "emission": np.eye(2, 4) + 0.01 * rng.normal(size=(2, 4)),
        "log_q": np.log([0.1, 0.1, 0.01, 0.02]),
        "log_r": np.log([0.3, 0.2]),
        "observed": rng.normal(size=(1000, 2)),
    }


VALUES = 10_000
_IN_C = "gradient through the iterations; C in one thread"
CONTROL_FLOW = (
    Case(
        "Runge–Kutta scan",
        "pendulum",
        f"double pendulum, {RK4_STEPS} steps as `scan`, float64, value + gradient",
        _pendulum,
        1e-8,
        {**_jax(10.0), "torch": 100.0},
    ),
    Case(
        "Newton, cube root",
        "cube roots",
        f"cube roots of {VALUES:,} values, `while_loop` in `map`, value + {_IN_C}",
        lambda rng: {"values": rng.uniform(0.5, 20.0, VALUES)},
        1e-8,
        {"c": 0.5},
    ),
    Case(
        "Newton, Kepler",
        "anomalies",
        f"Kepler's equation for {VALUES:,} values, `while_loop` in `map`, value + {_IN_C}",
        lambda rng: {"values": rng.uniform(0.1, 3.0, VALUES)},
        1e-8,
        {"c": 0.5},
    ),
    Case(
        "LSTM scan",
        "lstm",
        f"LSTM, {STEPS} steps, {HIDDEN} wide, batch of {BATCH}, float32, forward + backward",
        _lstm,
        1e-4,
        {**_jax(2.0), "torch": 3.0, "torch-lstm": 1.0},
    ),
    Case(
        "Kalman scan",
        "kalman",
        "Kalman filter, 1,000 steps, 4×4, float64, value + gradient in its parameters",
        _kalman,
        1e-8,
        _jax(5.0),
    ),
)
CASES = {
    case.name: case for case in (*CHAIN, *SMALL, *ROW_WISE, *TRAINING, COMPILE_TIME, *CONTROL_FLOW)
}
