"""Points, values and comparisons that tests of interpolators share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.testing import check_grads

# Nowhere is a middle between two of them a point of `POINTS`: knots of even degrees lie there.
KNOTS = np.array([0.0, 0.8, 1.5, 2.4, 3.0, 4.1, 4.9])
POINTS = np.array([0.37, 2.2, 3.31, 4.57, 1.13])


def assert_same(ours: Any, theirs: Any, *, rtol: float = 1e-9, atol: float = 1e-10) -> None:
    """Raise unless a tensor has the shape, dtype and values of an array."""
    assert isinstance(ours, gt.Tensor)
    found, wanted = np.asarray(ours), np.asarray(theirs)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


def check_twice(f: Callable[..., Any], *args: Any) -> None:
    """Check derivatives to second order, and that compiled values and gradients are the same.

    Those of first order entry by entry, those of second order along two random directions. `f`
    must compute with tensors, as SciPy's values may differ by its solvers' tolerances.
    """
    check_grads(f, args, order=1, rtol=1e-5, atol=1e-5)
    check_grads(f, args, order=2, rtol=1e-5, atol=1e-5, entries=0)

    def total(*args: Any) -> Any:
        out = f(*args)
        return np.sum(np.sin(out)), out

    # One program: to compile is what takes time here.
    found = gt.value_and_grad(total, tuple(range(len(args))), has_aux=True)
    for compiled, eager in zip(
        gt.tree.leaves(gt.jit(found)(*args)), gt.tree.leaves(found(*args)), strict=True
    ):
        np.testing.assert_allclose(compiled, eager, rtol=1e-8, atol=1e-10)


def check_batches(f: Callable[..., Any], *args: Any, steps: float = 0.01) -> None:
    """Check that `vmap` over each argument, and over all of them, is a loop."""
    batches = [np.stack([x, x + steps, x - 2 * steps]) for x in args]
    for n in range(len(args)):
        axes = [None] * len(args)
        axes[n] = 0
        given = [*args[:n], batches[n], *args[n + 1 :]]
        looped = [f(*args[:n], row, *args[n + 1 :]) for row in batches[n]]
        np.testing.assert_allclose(gt.vmap(f, tuple(axes))(*given), looped, rtol=1e-8, atol=1e-10)
    looped = [f(*rows) for rows in zip(*batches, strict=True)]
    np.testing.assert_allclose(gt.vmap(f)(*batches), looped, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(gt.jit(gt.vmap(f))(*batches), looped, rtol=1e-8, atol=1e-10)
