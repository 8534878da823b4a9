"""Two models in two contexts: each has a tape of its own.

What is computed with a tensor that requires a gradient is recorded in the active context. Here two
models are trained in turns, each in its context: clearing one tape leaves the other as it is, and a
result that was recorded in one context cannot get into the gradients of the other unnoticed.

    python examples/two_models_two_contexts.py
"""

from typing import NamedTuple

import numpy as np

import gradtape as gt


class Result(NamedTuple):
    """What the example found."""

    losses: tuple[float, float]  # of the two models in the end
    alone: tuple[float, float]  # of the same models, each trained alone
    mixed: str  # the error for a result of the other context
    kept: bool  # whether one tape survived the clearing of the other


class Model:
    """A cubic polynomial in training, and the context it is recorded in."""

    def __init__(self, target):
        self.context = gt.GradientContext()
        self.x = np.linspace(-1.0, 1.0, 50)
        self.target = target(self.x)
        self.weights = gt.zeros(4, dtype=gt.float64, requires_grad=True)
        self.optimizer = gt.optim.SGD(lr=0.3, momentum=0.9)

    def loss(self) -> gt.Tensor:
        """The misfit; recorded in whatever context is active."""
        powers = self.x[:, None] ** np.arange(4)
        return gt.mean((powers @ self.weights - self.target) ** 2)

    def step(self) -> float:
        """One step of training; the context of the model has to be active."""
        loss = self.loss()
        gt.compute_gradients(loss)
        self.optimizer.step([self.weights])
        self.weights.zero_grad()
        gt.clear_tape()  # that of the active context, and no other
        return loss.item()


def trained_together(steps: int) -> tuple[float, float]:
    """Open both contexts once, and go to and fro between them."""
    sine, wave = Model(np.sin), Model(lambda x: np.cos(3.0 * x))
    with sine.context, wave.context:  # the second one is active now
        for step in range(steps):
            with sine.context:  # an outer context can be entered again from inside
                first = sine.step()
            second = wave.step()
            if step % 50 == 0:
                print(f"step {step:3d}   sine {first:.6f}   wave {second:.6f}")
    return first, second  # both contexts and their tapes are gone


def trained_alone(model: Model, steps: int) -> float:
    """Train one model, with nothing else around."""
    with model.context:
        for _ in range(steps):
            loss = model.step()
    return loss


def mixing_raises() -> str:
    """Use a result of one context in another one: an error, not a wrong gradient."""
    sine, wave = Model(np.sin), Model(np.cos)
    with sine.context:
        outer = sine.loss()
        with wave.context:
            try:
                wave.loss() + outer
            except gt.GradtapeError as error:
                # The value can be used in any context; the history cannot.
                allowed = wave.loss() + outer.detach()
                gt.compute_gradients(allowed)
                return str(error)
    raise AssertionError("a result of another context was used without an error")


def clearing_leaves_the_other() -> bool:
    """Clear the inner tape, then differentiate what the outer one has recorded."""
    sine, wave = Model(np.sin), Model(np.cos)
    with sine.context:
        loss = sine.loss()
        with wave.context:
            wave.loss()
            gt.clear_tape()
        gt.compute_gradients(loss)
    return bool(np.any(sine.weights.grad.numpy() != 0))


def main(quick: bool = False) -> Result:
    """Train both models together and alone; `quick` takes fewer steps."""
    steps = 60 if quick else 300
    together = trained_together(steps)
    alone = (
        trained_alone(Model(np.sin), steps),
        trained_alone(Model(lambda x: np.cos(3.0 * x)), steps),
    )
    print(f"alone      sine {alone[0]:.6f}   wave {alone[1]:.6f}")
    mixed = mixing_raises()
    print(f"mixing contexts: {mixed}")
    return Result(together, alone, mixed, clearing_leaves_the_other())


if __name__ == "__main__":
    main()
