"""A physics-informed network: solve a differential equation by training.

A network u(x, y) is trained to satisfy u_xx + u_xy + u_yy = f inside of a square, with u = 0 on its
border. `gt.mixed_derivative` and `gt.laplacian` differentiate the network by x and y, in Taylor
mode; `gt.vmap` does it at all points at once; `gt.value_and_grad` differentiates that by the
parameters; and `gt.jit` compiles the whole step. No step knows of the others.

    python examples/physics_informed_network.py
"""

from typing import NamedTuple

import numpy as np

import gradtape as gt


class Result(NamedTuple):
    """What the example found."""

    first_loss: float  # mean square of what the equation is not satisfied by
    last_loss: float
    error: float  # largest difference from the exact solution


class Net(gt.nn.Module):
    """A smooth network of two numbers that is zero on the border."""

    def __init__(self, width: int):
        self.layers = gt.nn.Sequential(
            gt.nn.Linear(2, width, dtype=gt.float64),
            gt.nn.Tanh(),
            gt.nn.Linear(width, width, dtype=gt.float64),
            gt.nn.Tanh(),
            gt.nn.Linear(width, 1, dtype=gt.float64),
        )

    def forward(self, x, y):
        """The value at one point; the factor makes it 0 where x or y is 0 or 1."""
        border = x * (1.0 - x) * y * (1.0 - y)
        return border * self.layers(np.stack([x, y]))[0]


def exact(x, y):
    """The solution that the right-hand side is made for."""
    return np.sin(np.pi * x) * np.sin(np.pi * y)


def operator(u, x, y):
    """u_xx + u_xy + u_yy at a point, for any function u of two numbers."""
    mixed = gt.mixed_derivative(u, (0, 1))(x, y)
    return gt.laplacian(u, argnums=(0, 1))(x, y) + mixed


def loss(net, x, y, right):
    """Mean square of the residual over all points."""
    left = gt.vmap(lambda x, y: operator(net, x, y))(x, y)
    return np.mean((left - right) ** 2)


def grid(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points inside of the square."""
    line = (np.arange(count) + 0.5) / count
    x, y = np.meshgrid(line, line)
    return x.ravel(), y.ravel()


def main(quick: bool = False) -> Result:
    """Train and compare with the exact solution; `quick` has fewer points and steps."""
    gt.manual_seed(0)
    steps, net, (x, y) = (1000, Net(24), grid(8)) if quick else (3000, Net(24), grid(16))
    # The same operator that is trained with gives the right-hand side of the solution we want.
    right = gt.vmap(lambda x, y: operator(exact, x, y))(x, y)

    rule = gt.optim.Adam(lr=gt.optim.cosine(0.02, steps))

    @gt.jit
    def step(net, state):
        value, grads = gt.value_and_grad(loss)(net, x, y, right)
        net, state = rule.apply(net, grads, state)
        return value, net, state

    state, losses = rule.init(net), []
    with gt.no_grad():
        for number in range(steps):
            value, net, state = step(net, state)
            losses.append(float(value))
            if number % max(1, steps // 10) == 0:
                print(f"step {number:5d}   residual {losses[-1]:.6f}")
        test_x, test_y = grid(31)
        found = gt.vmap(net)(test_x, test_y)
    error = float(np.max(np.abs(found - exact(test_x, test_y))))
    print(f"largest error of the solution: {error:.2e}")
    return Result(losses[0], losses[-1], error)


if __name__ == "__main__":
    main()
