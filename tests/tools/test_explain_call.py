"""`gt.explain_call`: which kernel did what, and what is said where none did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.kernels import LARGE
from gradtape.errors import ArgumentError


def test_ops_and_rules_are_listed_in_order() -> None:
    report = gt.explain_call(gt.grad(lambda x: np.sum(np.tanh(np.sort(x)))), np.ones(LARGE))
    np.testing.assert_allclose(report.result, 1 - np.tanh(1.0) ** 2)
    ran = [(one.op, one.gradient, one.strategy) for one in report.ran]
    assert ran[:3] == [("sort", False, "numpy"), ("tanh", False, "tiles"), ("sum", False, "parts")]
    assert ("tanh", True, "tiles") in ran[3:]


@pytest.mark.parametrize("size", [3, 200])  # `@` is NumPy's whatever the size
def test_what_no_kernel_was_asked_for(size: int) -> None:
    x = gt.ones((size, size))
    assert str(gt.explain_call(lambda x: x @ x, x)) == (
        "no op came to the kernels: NumPy did all of it"
    )


def test_it_is_over_when_the_call_is() -> None:
    report = gt.explain_call(np.exp, gt.ones(LARGE))
    gt.exp(gt.ones(LARGE))
    assert len(report.ran) == 1


@pytest.mark.parametrize("given", [gt.ones(3), 1.0, None])
def test_a_result_is_not_a_function(given: Any) -> None:
    with pytest.raises(
        ArgumentError, match=r"explain_call: got .*, expected a function; .*explain_call\(f, x\)"
    ):
        gt.explain_call(given)
