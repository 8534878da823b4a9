"""Nothing waits for the garbage collector: records, handles and custom calls form no cycles."""

import gc

import numpy as np
import pytest

import gradtape as gt

X = np.arange(1.0, 5.0)


@gt.custom_vjp
def squared(x):
    return x * x


squared.defvjp(lambda ct, out, x: (2 * x * ct,))


def in_a_context():
    x = gt.tensor(X, requires_grad=True)
    gt.sum(squared(x) * x.reshape(2, 2).T.reshape(-1)).backward()


def by_a_tape():
    with gt.GradientTape() as tape:
        x = tape.watch(X)
        parts = gt.split(x * 2.0, 2)
        y = gt.sum(parts[0] * x[2:]) + gt.max(x)
    tape.gradient(y, x)


def by_transforms():
    gt.hessian(lambda x: gt.sum(x[1:] * x[:-1] ** 2))(X)
    gt.vmap(gt.grad(lambda x: gt.sum(squared(x))))(np.stack([X, X]))


def by_assignment():
    def f(x):
        y = x * 1.0
        y[1:] = y[:-1] * 2.0
        y.T[0] += 1.0
        return gt.sum(y)

    gt.grad(f)(X)


@pytest.mark.parametrize("work", [in_a_context, by_a_tape, by_transforms, by_assignment])
def test_no_garbage_is_left_for_the_collector(work):
    work()  # fills caches
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            work()
        assert gc.collect() == 0
    finally:
        gc.enable()
