"""Branches and loops: every way of running them gives the same."""

import numpy as np
import pytest

import gradtape as gt
from control_programs import PROGRAMS, X
from gradtape.testing import check_grads

BATCH = np.stack([X, X[::-1] * 0.5, X + 0.4, -X])
programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)


def agree(got, want, rtol=1e-10):
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-12)


@programs
def test_derivatives_in_eager_code_are_right(program):
    if program.__name__ != "counted_by_value":  # its length would jump
        check_grads(program, (X,), order=2)


@programs
def test_compiled_values_and_gradients(program):
    value, gradient = gt.value_and_grad(program)(X)
    agree(gt.jit(program)(X), value)
    agree(gt.jit(gt.grad(program))(X), gradient)
    agree(gt.grad(gt.jit(program))(X), gradient)
    for got, want in zip(gt.jit(gt.value_and_grad(program))(X), (value, gradient), strict=True):
        agree(got, want)
    direction = np.array([1.0, -2.0, 0.5])
    for got in (
        gt.jvp(program, (X,), (direction,)),
        gt.jvp(gt.jit(program), (X,), (direction,)),
        gt.jit(lambda x: gt.jvp(program, (x,), (direction,)))(X),
    ):
        agree(got[0], value)
        agree(got[1], gradient @ direction)


# Others loop in stretches, or count or go backwards, too.
SLOW = ("backwards_in_stretches", "counted_in_stretches")


@pytest.mark.parametrize(
    "program",
    [pytest.param(p, marks=pytest.mark.slow) if p.__name__ in SLOW else p for p in PROGRAMS],
    ids=lambda program: program.__name__,
)
def test_second_derivatives_in_every_mix(program):
    want = gt.jacfwd(gt.grad(program))(X)
    for outer in (gt.jacfwd, gt.jacrev):
        for inner in (gt.jacfwd, gt.jacrev):
            agree(gt.jit(outer(inner(program)))(X), want, rtol=1e-8)


@programs
def test_batches(program):
    value = np.array([program(x) for x in BATCH])
    gradient = np.stack([gt.grad(program)(x) for x in BATCH])
    agree(gt.vmap(program)(BATCH), value)
    agree(gt.jit(gt.vmap(program))(BATCH), value)
    agree(gt.vmap(gt.jit(program))(BATCH), value)
    agree(gt.vmap(gt.grad(program))(BATCH), gradient)
    agree(gt.jit(gt.vmap(gt.grad(program)))(BATCH), gradient)
    agree(gt.jit(gt.grad(lambda b: np.sum(gt.vmap(program)(b))))(BATCH), gradient)
