"""Custom rules and the arrays they are given: nothing is written to, nothing is shared."""

import numpy as np
import pytest

import gradtape as gt

X = np.array([1.0, 2.0, 3.0])


def test_rules_and_functions_cannot_write_into_what_they_are_given():
    x = X.copy()

    def doubling(ct, out, x):
        ct *= 2.0
        return (ct,)

    f = gt.custom_vjp(lambda x: x * 1.0)
    f.defvjp(doubling)
    with pytest.raises(ValueError, match="read-only"):
        gt.grad(lambda x: gt.sum(f(x) + x))(x)

    def shifting(x):
        x += 1.0
        return x

    with pytest.raises(ValueError, match="read-only"):
        gt.custom_vjp(shifting)(x)
    assert x.tolist() == X.tolist()


def test_a_rule_may_return_an_array_that_is_kept_elsewhere():
    kept = np.full(3, 5.0)
    f = gt.custom_vjp(lambda x: gt.sum(x))
    f.defvjp(lambda ct, out, x: (kept,))
    slope = gt.grad(f)(X)
    assert slope.tolist() == [5, 5, 5]
    assert not np.shares_memory(slope, kept)


def test_errors_of_a_users_function_stay_the_users():
    class OwnError(ValueError):
        pass

    def failing(x):
        raise OwnError("mine")

    with pytest.raises(OwnError, match="mine"):
        gt.custom_vjp(failing)(X)
