"""Functions with loops, each written once for NumPy, gradtape, JAX and PyTorch.

`np` is a library's form of NumPy's namespace; `scan`, `while_loop` and `map_rows` are its loops,
with the signatures of JAX. `plain_loops.py` has them as loops of Python.
"""

from collections.abc import Callable
from typing import Any

GRAVITY = 9.81
STEP = 0.01
RK4_STEPS = 200
TOLERANCE = 1e-12
MOST_ITERATIONS = 50
ECCENTRICITY = 0.6

Loop = Callable[..., Any]


def pendulum_slope(np: Any, y: Any, params: Any) -> Any:
    """Return the slope of a double pendulum: two angles, then their speeds."""
    a, b, u, v = y[0], y[1], y[2], y[3]
    m1, m2, l1, l2 = params[0], params[1], params[2], params[3]
    between = a - b
    sine, cosine = np.sin(between), np.cos(between)
    inertia = 2.0 * m1 + m2 - m2 * np.cos(2.0 * between)
    first = (
        -GRAVITY * (2.0 * m1 + m2) * np.sin(a)
        - m2 * GRAVITY * np.sin(a - 2.0 * b)
        - 2.0 * sine * m2 * (v * v * l2 + u * u * l1 * cosine)
    )
    second = (
        2.0 * sine * ((m1 + m2) * (u * u * l1 + GRAVITY * np.cos(a)) + v * v * l2 * m2 * cosine)
    )
    return np.stack([u, v, first / (l1 * inertia), second / (l2 * inertia)])


def pendulum_misfit(np: Any, scan: Loop, start: Any, params: Any, observed: Any) -> Any:
    """Compute how far a double pendulum, by the classical Runge–Kutta method, is from a path."""

    def step(y: Any, _: None) -> tuple[Any, Any]:
        k1 = pendulum_slope(np, y, params)
        k2 = pendulum_slope(np, y + 0.5 * STEP * k1, params)
        k3 = pendulum_slope(np, y + 0.5 * STEP * k2, params)
        k4 = pendulum_slope(np, y + STEP * k3, params)
        y = y + STEP / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return y, y

    _, path = scan(step, start, None, length=RK4_STEPS)
    return np.mean((path - observed) ** 2)


def sum_of_cube_roots(np: Any, while_loop: Loop, map_rows: Loop, values: Any) -> Any:
    """Compute the sum of cube roots, each by Newton's method from the value itself."""

    def going(state: Any) -> Any:
        _, change, count = state
        return (np.abs(change) > TOLERANCE) & (count < MOST_ITERATIONS)

    def root(value: Any) -> Any:
        def improve(state: Any) -> Any:
            x, _, count = state
            change = (x * x * x - value) / (3.0 * x * x)
            return x - change, change, count + 1

        return while_loop(going, improve, (value, 1.0, 0))[0]

    return np.sum(map_rows(root, values))


def sum_of_anomalies(np: Any, while_loop: Loop, map_rows: Loop, mean_anomalies: Any) -> Any:
    """Solve Kepler's equation `E - e·sin(E) = M` for each M by Newton's method; add up the E."""

    def going(state: Any) -> Any:
        _, change, count = state
        return (np.abs(change) > TOLERANCE) & (count < MOST_ITERATIONS)

    def anomaly(mean: Any) -> Any:
        def improve(state: Any) -> Any:
            angle, _, count = state
            error = angle - ECCENTRICITY * np.sin(angle) - mean
            change = error / (1.0 - ECCENTRICITY * np.cos(angle))
            return angle - change, change, count + 1

        return while_loop(going, improve, (mean, 1.0, 0))[0]

    return np.sum(map_rows(anomaly, mean_anomalies))


def lstm(
    np: Any, sigmoid: Callable[[Any], Any], scan: Loop, wx: Any, wh: Any, bias: Any, xs: Any
) -> Any:
    """Return the hidden states of an LSTM; its gates are input, forget, cell and output.

    Args:
        np: NumPy's namespace.
        sigmoid: The logistic function.
        scan: The loop.
        wx: Weights of the inputs, of shape (inputs, 4·hidden).
        wh: Weights of the hidden state, of shape (hidden, 4·hidden).
        bias: Of shape (4·hidden,).
        xs: Inputs, of shape (steps, batch, inputs).
    """
    hidden = wh.shape[0]

    def step(state: Any, x: Any) -> tuple[Any, Any]:
        h, c = state
        z = x @ wx + h @ wh + bias
        entering, kept = sigmoid(z[:, :hidden]), sigmoid(z[:, hidden : 2 * hidden])
        cell, shown = np.tanh(z[:, 2 * hidden : 3 * hidden]), sigmoid(z[:, 3 * hidden :])
        c = kept * c + entering * cell
        h = shown * np.tanh(c)
        return (h, c), h

    zeros = np.zeros((xs.shape[1], hidden), dtype=xs.dtype)
    return scan(step, (zeros, zeros), xs)[1]


def kalman_loss(
    np: Any, scan: Loop, transition: Any, emission: Any, log_q: Any, log_r: Any, observed: Any
) -> Any:
    """Compute the negative log likelihood of observations under a linear Gaussian model.

    Args:
        np: NumPy's namespace.
        scan: The loop.
        transition: Matrix from a state to the next.
        emission: Matrix from a state to what is observed of it.
        log_q: Logarithms of the variances that a step adds to the state.
        log_r: Logarithms of the variances that are added to an observation.
        observed: Observations, of shape (steps, observed).
    """
    q, r = np.diag(np.exp(log_q)), np.diag(np.exp(log_r))
    states, seen = log_q.shape[0], log_r.shape[0]

    def step(belief: Any, y: Any) -> tuple[Any, Any]:
        mean, cov = belief
        mean = transition @ mean
        cov = transition @ cov @ transition.T + q
        error = y - emission @ mean
        cross = emission @ cov
        spread = cross @ emission.T + r
        gain = np.linalg.solve(spread, cross).T
        loss = 0.5 * (error @ np.linalg.solve(spread, error) + np.linalg.slogdet(spread)[1])
        return (mean + gain @ error, cov - gain @ cross), loss

    start = np.zeros(states), np.eye(states)
    losses = scan(step, start, observed)[1]
    return np.sum(losses) + 0.5 * observed.shape[0] * seen * np.log(2.0 * np.pi)
