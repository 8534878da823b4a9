"""The process of one side of the per-op table: `python -m benchmarks.op_worker SIDE`.

What is timed is an operation and its backward pass, from a cotangent that was made beforehand; the
gradients of the arguments are dropped before each call.
"""

from typing import Any

import numpy as np

from benchmarks import THREADS
from benchmarks.compiled_program import Clock, Program
from benchmarks.op_cases import CASES, OpCase
from benchmarks.worker import answer_requests


class Side:
    """Answers the requests of one side; one program is in hand at a time."""

    def __init__(self, key: str) -> None:
        self._program = {"gradtape": our_program, "torch": _pytorch}[key]
        self._clock: Clock | None = None

    def prepare(self, case: str, result: str) -> dict[str, Any]:
        """Make the program of a case and write its gradients to a file."""
        program = self._program(CASES[case])
        names = dict(program.names)
        exec(program.call, names)
        np.savez(result, **{name: program.leaf(names[name].grad) for name in CASES[case].arrays()})
        self._clock = Clock(program)
        return {}

    def turn(self, seconds: float, least: int) -> dict[str, Any]:
        """Time the program that was prepared."""
        assert self._clock is not None
        return {"batches": self._clock.turn(seconds, least)}


def _call(case: OpCase, expression: str) -> str:
    drop = "; ".join(f"{name}.grad = None" for name in case.arrays())
    return f"{drop}; ({expression}).backward(seed)"


def _integers(case: OpCase) -> dict[str, np.ndarray]:
    """Make an index of all elements, and a label for each row of a square matrix."""
    rng, side = np.random.default_rng(1), round(case.size**0.5)
    return {
        "index": rng.integers(0, case.size, case.size),
        "label": rng.integers(0, side, side),
    }


def _seed(case: OpCase, shape: tuple[int, ...]) -> np.ndarray:
    """Make the cotangent to start from; with ones, some gradients would be nothing but rounding."""
    seed = np.random.default_rng(2).uniform(0.5, 1.5, shape)
    return case.laid_out(np.asarray(seed, case.dtype))


def our_program(case: OpCase) -> Program:
    """Return the program of our side."""
    import gradtape as gt

    names: dict[str, Any] = {
        name: gt.Tensor(x.copy(order="K")).set_requires_grad(True)
        for name, x in case.arrays().items()
    }
    names |= {"gt": gt, **_integers(case)}
    out = eval(case.ours, names)
    names["seed"] = gt.Tensor(_seed(case, out.shape))
    return Program(_call(case, case.ours), names)


def _pytorch(case: OpCase) -> Program:
    import torch
    from torch.nn import functional

    torch.set_num_threads(THREADS)
    names: dict[str, Any] = {
        name: torch.from_numpy(x.copy(order="K")).requires_grad_()
        for name, x in case.arrays().items()
    }
    names |= {"torch": torch, "F": functional}
    names |= {name: torch.tensor(x) for name, x in _integers(case).items()}
    names["seed"] = torch.from_numpy(_seed(case, eval(case.pytorch, names).shape))
    return Program(_call(case, case.pytorch), names, leaf=lambda x: x.numpy())


if __name__ == "__main__":
    answer_requests(Side)
