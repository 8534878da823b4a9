"""Programs with branches and loops: functions of one array that return a number."""

import numpy as np

import gradtape as gt

X = np.array([0.7, -0.3, 1.2])
MATRIX = np.array([[0.5, 0.1, 0.0], [-0.2, 0.3, 0.4], [0.1, 0.0, -0.6]])


def recurrence(x):
    """A scan with a state, results, and arrays from outside."""
    xs = np.arange(1.0, 6.0)
    carry, ys = gt.scan(lambda c, v: (np.sin(x[0] * c) + v * x[1], c * c), x[2], xs)
    return carry + np.sum(ys)


def matrix_steps(x):
    """A scan over steps alone, with products."""
    carry, _ = gt.scan(lambda c, _: (np.tanh(MATRIX @ c) + 0.1 * x, None), x, length=7)
    return np.sum(carry**2)


def backwards(x):
    """A scan from the end, with containers as state, elements and results."""
    xs = {"a": np.linspace(0.0, 1.0, 4), "b": np.outer(np.arange(4.0), x)}

    def step(carry, at):
        s, t = carry
        return (s * np.cos(at["a"]) + at["b"][1], t + s), {"y": at["b"] * s, "z": t}

    (s, t), ys = gt.scan(step, (x[0], 0.0), xs, reverse=True)
    return s * t + np.sum(ys["y"] ** 2) + np.sum(ys["z"])


def in_stretches(x):
    """A scan that keeps few states."""
    xs = np.linspace(0.5, 1.5, 11)
    carry, ys = gt.scan(lambda c, v: (np.sin(c * v) + x[1], c * x[0]), x[2], xs, save="sqrt")
    return carry + np.sum(ys**2)


def backwards_in_stretches(x):
    """The same from the end, keeping a number of states."""
    xs = np.linspace(0.5, 1.5, 10)
    carry, ys = gt.scan(lambda c, v: (np.sin(c * v) + x, c * x[0]), x, xs, reverse=True, save=3)
    return np.sum(carry) + np.sum(ys**2)


def counted(x):
    """A loop of known length that reads its counter."""
    return np.sum(gt.fori_loop(2, 9, lambda i, s: s * 0.9 + i * x / (1.0 + s * s), x))


def counted_in_stretches(x):
    """The same, keeping few states."""
    body = lambda i, s: s * 0.9 + i * x / (1.0 + s * s)  # noqa: E731
    return np.sum(gt.fori_loop(2, 9, body, x, save=2))


def newton(x):
    """A loop whose length depends on the values."""
    a = 1.0 + x[0] * x[0]
    root = gt.while_loop(lambda s: np.abs(s * s - a) > 1e-13 * a, lambda s: 0.5 * (s + a / s), a)
    return root * x[1] + x[2]


def doubling(x):
    """The same with containers as state, an integer among them, keeping few states."""
    state = {"n": 0, "v": x * 0.1}
    out = gt.while_loop(
        lambda s: np.sum(s["v"] ** 2) < 40.0,
        lambda s: {"n": s["n"] + 1, "v": s["v"] * 1.3 + 0.1 * np.sin(s["v"]) * x[0]},
        state,
        save="sqrt",
    )
    return np.sum(out["v"]) + out["n"] * x[1]


def counted_by_value(x):
    """A counted loop whose end depends on the values."""
    end = (np.abs(x[0]) * 10).astype(int)
    return np.sum(gt.fori_loop(0, end, lambda i, s: np.sin(s) + i * x[1], x))


def branch(x):
    """A branch on a value."""
    return gt.cond(np.sum(x) > 1.0, lambda x: np.sum(x * x * x), lambda x: np.sum(np.cos(x)), x)


def three_branches(x):
    """A branch on an integer, with an array from outside in one of them."""
    number = (np.abs(x[0]) * 3).astype(int) % 3
    branches = [
        lambda v, k: np.sum(v) * k,
        lambda v, k: np.sum(MATRIX @ v) * k * k,
        lambda v, k: k * np.max(v),
    ]
    return gt.switch(number, branches, x, x[1])


def nested_loops(x):
    """A loop in a loop, the inner one of a length that differs from step to step."""

    def inner(c, v):
        return gt.while_loop(lambda s: np.abs(s) < 2.0, lambda s: s * 1.7 + 0.1 * v, c * 0.1 + 0.2)

    def step(c, v):
        c = gt.cond(v > 1.5, lambda c: inner(c, v), lambda c: c * x[1], c)
        return c, c * v

    carry, ys = gt.scan(step, x[0], np.array([1.0, 2.0, 3.0, 1.2]))
    return carry + np.sum(ys * x[2])


def mapped(x):
    """A function of each element by itself."""
    ys = gt.map(lambda v: gt.fori_loop(0, 4, lambda i, s: np.sin(s) * x[0] + v, v), np.tile(x, 2))
    return np.sum(ys**2)


def unused(x):
    """Loops with parts that nothing depends on."""
    carry, _ = gt.scan(lambda c, v: ((c[0] * v, c[1] + 1.0), np.exp(v)), (x[0], 0.0), x)
    return carry[0] + 0.0 * carry[1]


PROGRAMS = [
    recurrence, matrix_steps, backwards, in_stretches, backwards_in_stretches, counted,
    counted_in_stretches, newton, doubling, counted_by_value, branch, three_branches, nested_loops,
    mapped, unused,
]  # fmt: skip
