"""Linear regression: the gradient of a loss, and steps down it.

Shows `gt.value_and_grad` on plain NumPy code, the same fit with `gt.nn.Linear` and an optimizer in
PyTorch's way, and `gt.hessian`, from which the uncertainty of the coefficients follows.

    python examples/linear_regression.py
"""

from typing import NamedTuple

import numpy as np

import gradtape as gt

TRUE_WEIGHTS, TRUE_BIAS, NOISE = np.array([2.0, -1.0, 0.5]), 0.7, 0.1


class Result(NamedTuple):
    """What the example found."""

    exact: np.ndarray  # weights and bias by a solver of linear equations
    descent: np.ndarray  # by gradient descent
    module: np.ndarray  # by a module and Adam
    errors: np.ndarray  # standard errors


def make_data(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and outputs with noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 3))
    return x, x @ TRUE_WEIGHTS + TRUE_BIAS + NOISE * rng.normal(size=count)


def loss(params: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """The mean squared error; nothing but NumPy."""
    weights, bias = params[:3], params[3]
    return np.mean((x @ weights + bias - y) ** 2)


def by_descent(x: np.ndarray, y: np.ndarray, steps: int) -> np.ndarray:
    """Gradient descent: arrays in, arrays out."""
    params = np.zeros(4)
    for step in range(steps):
        value, gradient = gt.value_and_grad(loss)(params, x, y)
        params = params - 0.1 * gradient
        if step % 10 == 0:
            print(f"step {step:3d}   loss {value:.6f}")
    return params


def by_module(x: np.ndarray, y: np.ndarray, steps: int) -> np.ndarray:
    """The same model as a module, trained as in PyTorch."""
    gt.manual_seed(0)
    model = gt.nn.Linear(3, 1, dtype=gt.float64)
    optimizer = gt.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        gt.nn.mse_loss(model(x), y[:, None]).backward()
        optimizer.step()
    state = model.state_dict()
    return np.append(state["weight"], state["bias"])


def standard_errors(params: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far each coefficient may be off: for noise σ, the covariance is 2σ²/n · H⁻¹."""
    variance = loss(params, x, y)
    hessian = gt.hessian(loss)(params, x, y)
    return np.sqrt(np.diag(np.linalg.inv(hessian)) * 2.0 * variance / len(x))


def main(quick: bool = False) -> Result:
    """Fit in three ways; `quick` uses less data and fewer steps."""
    x, y = make_data(100 if quick else 2000)
    columns = np.column_stack([x, np.ones(len(x))])
    exact = np.linalg.lstsq(columns, y)[0]
    descent = by_descent(x, y, steps=60)
    module = by_module(x, y, steps=300 if quick else 600)
    errors = standard_errors(exact, x, y)
    print("\n           true     exact   descent    module   standard error")
    columns = np.column_stack([[*TRUE_WEIGHTS, TRUE_BIAS], exact, descent, module, errors])
    for name, row in zip(("w0", "w1", "w2", "bias"), columns, strict=True):
        print(f"{name:5}" + "".join(f"{number:10.5f}" for number in row))
    return Result(exact, descent, module, errors)


if __name__ == "__main__":
    main()
