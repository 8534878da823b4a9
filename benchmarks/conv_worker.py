"""The process of one side of the convolutions: `python -m benchmarks.conv_worker SIDE`.

What is timed is an operation and its backward pass, from a cotangent that was made beforehand. All
images are in memory with channels last, as both sides like them best.
"""

from typing import Any, NamedTuple

import numpy as np

from benchmarks import THREADS
from benchmarks.compiled_program import Clock, Program
from benchmarks.worker import answer_requests


class Case(NamedTuple):
    """One operation under the same name on both sides: its options, and the shapes of arrays."""

    function: str
    options: str
    image: tuple[int, ...]
    weight: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        arrays = ", ".join(self.arrays())
        return f"{self.function}({arrays}{self.options and ', ' + self.options})"

    def arrays(self) -> dict[str, np.ndarray]:
        """Make the arguments; the same ones for both sides."""
        rng = np.random.default_rng(0)
        shapes = {"x": self.image} | ({"w": self.weight} if self.weight else {})
        return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}

    def seed(self, shape: tuple[int, ...]) -> np.ndarray:
        """Make the cotangent to start from."""
        return np.random.default_rng(1).normal(size=shape).astype(np.float32)


LAYER = (32, 64, 32, 32)
CASES = (
    Case("conv2d", "padding=1", LAYER, (64, 64, 3, 3)),
    Case("conv2d", "padding=1, stride=2", LAYER, (64, 64, 3, 3)),
    Case("conv2d", "", LAYER, (64, 64, 1, 1)),
    Case("conv2d", "padding=1, groups=8", LAYER, (64, 8, 3, 3)),
    Case("conv2d", "padding=1, groups=64", LAYER, (64, 1, 3, 3)),
    Case("max_pool2d", "kernel_size=2", LAYER),
    Case("avg_pool2d", "kernel_size=2", LAYER),
    Case("interpolate", "scale_factor=2, mode='bilinear'", LAYER),
)


class Side:
    """Answers the requests of one side; one program is in hand at a time."""

    def __init__(self, key: str) -> None:
        self._program = {"gradtape": _gradtape, "torch": _pytorch}[key]
        self._clock: Clock | None = None

    def prepare(self, case: int, result: str) -> dict[str, Any]:
        """Make the program of a case and write its gradients to a file."""
        program = self._program(CASES[case])
        names = dict(program.names)
        exec(program.call, names)
        grads = {name: program.leaf(names[name].grad) for name in CASES[case].arrays()}
        np.savez(result, **grads)
        self._clock = Clock(program)
        return {}

    def turn(self, seconds: float, least: int) -> dict[str, Any]:
        """Time the program that was prepared."""
        assert self._clock is not None
        return {"seconds": self._clock.turn(seconds, least)}


def _call(case: Case) -> str:
    drop = "; ".join(f"{name}.grad = None" for name in case.arrays())
    return f"{drop}; F.{case.text}.backward(seed)"


def _channels_last(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def _gradtape(case: Case) -> Program:
    import gradtape as gt

    names: dict[str, Any] = {"F": gt.nn.functional}
    for name, array in case.arrays().items():
        names[name] = gt.tensor(_channels_last(array), requires_grad=True)
    seed = case.seed(eval(f"F.{case.text}", names).shape)
    return Program(_call(case), {**names, "seed": gt.Tensor(_channels_last(seed))})


def _pytorch(case: Case) -> Program:
    import torch

    torch.set_num_threads(THREADS)
    names: dict[str, Any] = {"F": torch.nn.functional}
    for name, array in case.arrays().items():
        tensor = torch.tensor(array).to(memory_format=torch.channels_last)
        names[name] = tensor.requires_grad_()
    seed = torch.tensor(case.seed(tuple(eval(f"F.{case.text}", names).shape)))
    names["seed"] = seed.to(memory_format=torch.channels_last)
    return Program(_call(case), names, leaf=lambda x: x.numpy())


if __name__ == "__main__":
    answer_requests(Side)
