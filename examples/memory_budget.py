"""Training under a memory budget: fewer values are kept, and computed again when needed.

A deep network is trained twice, once as it is, once with `memory_budget_mb`. Nothing in the model
changes, and gradients have the same bits. `gt.GradientMemoryProfiler` reads from the allocators
what it comes to.

    python examples/memory_budget.py
"""

import gc
from typing import NamedTuple

import numpy as np

import gradtape as gt


class Result(NamedTuple):
    """What the example found."""

    plain_mb: float  # the peak of training as it is
    budget_mb: float  # what was asked for
    bounded_mb: float  # the peak with the budget
    same_bits: bool  # whether both runs end with the same parameters
    losses: list[float]
    share: float  # of the cost of the forward pass, what was computed again
    least: str  # what is said of a budget that cannot be met


class Block(gt.nn.Module):
    """Normalization, a layer, and a way around both."""

    def __init__(self, size: int):
        self.norm, self.linear = gt.nn.LayerNorm(size), gt.nn.Linear(size, size)

    def forward(self, x):
        return x + gt.nn.gelu(self.linear(self.norm(x)))


def make_model(size: int, depth: int) -> gt.nn.Module:
    """Many blocks one after the other."""
    gt.manual_seed(0)
    return gt.nn.Sequential(*[Block(size) for _ in range(depth)], gt.nn.Linear(size, 1))


def train(model, x, y, steps: int, config: gt.CheckpointConfig | None):
    """A loop as usual; the context that records it knows the budget."""
    optimizer = gt.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    with gt.GradientContext(checkpoint=config) as context:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = gt.nn.mse_loss(model(x), y)
            loss.backward(release=True)  # frees each record as soon as it was visited
            optimizer.step()
            losses.append(loss.item())
        report = context.tape.checkpoint_report
    return losses, report


def measured(model, x, y, steps: int, config: gt.CheckpointConfig | None):
    """Train under the profiler; the peak in megabytes, losses, and the report of the tape."""
    train(model, x, y, 1, config)  # the optimizer's state and compiled kernels are not the question
    gc.collect()  # what is freed meanwhile would count as less memory
    with gt.GradientMemoryProfiler() as profiler:
        losses, report = train(model, x, y, steps, config)
    return profiler.peak_bytes() / 1e6, losses, report


def main(quick: bool = False) -> Result:
    """Train with and without a budget; `quick` is a smaller model."""
    size, depth, batch, steps = (64, 12, 512, 2) if quick else (256, 24, 1024, 5)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, size)).astype(np.float32)
    y = np.sin(x[:, :1])

    plain, bounded = make_model(size, depth), make_model(size, depth)
    plain_mb, losses, _ = measured(plain, x, y, steps, None)
    print(f"as it is:        {plain_mb:7.1f} MB at the peak")

    # Parameters, gradients and the optimizer's state come on top of what the budget is for.
    budget_mb = plain_mb / 3
    config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Auto, memory_budget_mb=budget_mb)
    bounded_mb, again, report = measured(bounded, x, y, steps, config)
    print(f"with {budget_mb:6.1f} MB:  {bounded_mb:7.1f} MB at the peak")
    print(f"in {steps} steps it {report}")

    same = losses == again and all(
        np.array_equal(one.detach(), other.detach())
        for one, other in zip(plain.parameters(), bounded.parameters(), strict=True)
    )
    print(f"losses {losses[0]:.4f} to {losses[-1]:.4f}; the same bits: {same}")

    tiny = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Auto, memory_budget_mb=0.01)
    try:
        train(make_model(size, depth), x, y, 1, tiny)
    except gt.errors.BudgetError as error:
        least = str(error)
    print(f"10 kB are too little: {least}")
    return Result(plain_mb, budget_mb, bounded_mb, same, losses, report.share, least)


if __name__ == "__main__":
    main()
