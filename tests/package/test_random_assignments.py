"""Random small programs that slice, write and write through views, compared with NumPy."""

from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

import gradtape as gt

X = np.arange(1.0, 7.0)

VIEWS = ["view", "reverse", "flip", "column", "odd", "transposed"]
WRITES = ["element", "add to element", "fill", "copy", "scale", "subtract", "array index"]
KINDS = [*VIEWS, *WRITES, "new"]
number = st.integers(0, 11)
programs = st.lists(
    st.tuples(st.sampled_from(KINDS), number, number, number), min_size=2, max_size=9
)


def run(program: list[tuple[str, int, int, int]], x: Any) -> list[Any]:
    """Interpret a program on an array or a tensor; returns everything it made."""
    made = [x]
    for kind, which, i, j in program:
        a, b = made[which % len(made)], made[j % len(made)]
        n = len(a)
        if kind == "view":
            start = i % n
            made.append(a[start : start + 1 + j % n : 1 + j % 2])
        elif kind == "reverse":
            made.append(a[::-1])
        elif kind == "flip":
            made.append(np.flip(a))
        elif kind == "column":
            made.append(a.reshape(-1, 1)[:, 0])
        elif kind == "odd" and n % 2 == 0:
            made.append(a.reshape(-1, 2).T[1])
        elif kind == "transposed" and n % 2 == 0:
            made.append(a.reshape(2, -1).T.reshape(-1))  # a copy, unless a row is all there is
        elif kind == "element":
            a[i % n] = b[i % len(b)] * 0.5
        elif kind == "add to element":
            a[i % n] += b[0]
        elif kind == "fill":
            a[i % n :] = b[-1]
        elif kind == "copy":
            m = min(n, len(b))
            a[:m] = b[:m].copy()  # NumPy does not look out for overlaps of different steps
        elif kind == "scale":
            a *= 0.5
        elif kind == "subtract":
            a -= b[0] * 0.25
        elif kind == "new":
            made.append(a * 2.0)
        elif kind == "array index":
            index = np.array([i % n, j % n])
            a[index] = a[index[::-1]] * 0.5
    return made


def weighted(made: list[Any]) -> Any:
    """A number that depends on every element of every array, differently."""
    return sum(np.sum(a * (np.arange(len(a)) + k + 1.0)) for k, a in enumerate(made))


def same(made: list[Any], expected: list[np.ndarray]) -> None:
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a.detach().tolist() if isinstance(a, gt.Tensor) else a, b)


@given(programs)
def test_values_are_numpys(program):
    expected = run(program, X.copy())
    same(run(program, gt.tensor(X)), expected)
    with gt.GradientContext():
        same(run(program, gt.tensor(X, requires_grad=True) * 1.0), expected)
    same(gt.jvp(lambda x: run(program, x), (X,), (X,))[0], expected)
    same([b[1] for b in gt.vmap(lambda x: run(program, x))(np.stack([X * 2, X]))], expected)


@given(programs)
@settings(max_examples=50)
def test_derivatives_are_those_of_the_program(program):
    # All programs are linear, so that differences are exact but for rounding.
    expected = [weighted(run(program, X + e)) - weighted(run(program, X.copy())) for e in np.eye(6)]
    slope = gt.grad(lambda x: weighted(run(program, x)))(X)
    np.testing.assert_allclose(slope, expected, atol=1e-9)
    pushed = gt.jvp(lambda x: weighted(run(program, x)), (X,), (np.ones(6),))[1]
    np.testing.assert_allclose(pushed, np.sum(expected), atol=1e-8)
