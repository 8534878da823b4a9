"""Gaussian noise on gradients, with a schedule."""

from __future__ import annotations

import math
from typing import Any

from gradtape.gradients.leaves import Gradients, real_dtype, wide
from gradtape.gradients.step import State, Step, check_entries
from gradtape.graph.known_values import is_unknown
from gradtape.ops.cast import astype
from gradtape.ops.generator import Generator
from gradtape.ops.random import randn
from gradtape.optim.numbers import Number, not_negative


def add_noise(
    grads: Any,
    scale: Number,
    *,
    step: Any = None,
    decay: Number = 0.55,
    generator: Generator | None = None,
) -> Any:
    """Add Gaussian noise to gradients.

    Args:
        grads: Nested containers of gradients.
        scale: The standard deviation; of complex numbers, that of the magnitude.
        step: The number t of the step, from 0, for a variance that decreases as
            scale²/(1 + t)^decay ([Neelakantan et al. 2015](https://arxiv.org/abs/1511.06807));
            None for a constant one.
        decay: The exponent γ.
        generator: Where numbers are drawn from; the generator of `gt.manual_seed` if None.

    Returns:
        New gradients in the same containers and dtypes. In a compiled function the noise is another
        one at each call; under `gt.vmap` it is the same for the whole batch.

    Raises:
        ArgumentError: A number is negative.
        DTypeError: A leaf is neither an array nor a number, or not of floats.

    >>> grads = {"w": np.zeros(3)}
    >>> noisy = gt.gradients.add_noise(grads, 0.1, generator=gt.random.Generator(0))
    >>> again = gt.gradients.add_noise(grads, 0.1, generator=gt.random.Generator(0))
    >>> np.array_equal(noisy["w"], again["w"]), bool(np.all(noisy["w"] != 0))
    (True, True)
    """
    deviation = not_negative(scale, "add_noise", "scale")
    exponent = not_negative(decay, "add_noise", "decay")
    if step is not None:
        deviation = deviation * (1.0 + not_negative(step, "add_noise", "step")) ** (-exponent / 2)
    gradients = Gradients("add_noise", grads)
    noisy = [wide(x) + _noise(x, deviation, generator) for x in gradients.values]
    return gradients.rebuilt(noisy)


def _noise(x: Any, deviation: Any, generator: Generator | None) -> Any:
    full = wide(x)
    dtype = real_dtype(full)

    def drawn() -> Any:
        numbers = randn(x.shape, dtype=dtype, generator=generator)
        return numbers if is_unknown(numbers) else numbers.numpy()

    if full.dtype.kind == "c":
        return astype(drawn() + 1j * drawn(), full.dtype) * (deviation * math.sqrt(0.5))
    return drawn() * deviation


class Noise(Step):
    """`add_noise` with its own count of steps, as a step of a `Pipeline`.

    Args:
        scale: The standard deviation at the first step.
        decay: The exponent of the schedule; 0 for constant noise.
        generator: Where numbers are drawn from; the generator of `gt.manual_seed` if None.

    Raises:
        ArgumentError: A number is negative.

    >>> noise = gt.gradients.Noise(0.1, decay=0.55, generator=gt.random.Generator(0))
    >>> noisy = [noise(np.zeros(1000)) for _ in range(100)]
    >>> bool(noisy[-1].std() < noisy[0].std() / 3)
    True
    """

    def __init__(
        self, scale: Number, *, decay: Number = 0.55, generator: Generator | None = None
    ) -> None:
        self.scale = not_negative(scale, "Noise", "scale")
        self.decay = not_negative(decay, "Noise", "decay")
        self.generator = generator

    def init(self, grads: Any) -> State:
        """Return the state before the first step: no steps."""
        return {"step": 0}

    def apply(self, grads: Any, state: State, params: Any = None) -> tuple[Any, State]:
        """Return noisy gradients and the new state.

        Args:
            grads: Nested containers of gradients.
            state: What `init` or the last `apply` returned.
            params: Not needed.
        """
        self.check_state(state)
        step = state["step"]
        options = {"decay": self.decay, "generator": self.generator}
        return add_noise(grads, self.scale, step=step, **options), {"step": step + 1}

    def check_state(self, state: State) -> None:
        """Raise an error for a state that is not one of this step.

        Args:
            state: What may be one.

        Raises:
            ArgumentError: It is not.
        """
        check_entries("Noise", state, {"step"})

    def __repr__(self) -> str:
        return f"Noise({self.scale}, decay={self.decay})"
