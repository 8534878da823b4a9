"""Taylor mode of every op, by the cases in `opcases`: the same as nested `gt.jvp`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from every_case import FUNCTIONS, call_of, each, with_arrays
from gradtape.core.op import registry
from gradtape.errors import NotDifferentiableError
from nested_derivatives import assert_derivatives, nested
from opcall import Call, resolution
from opcases.case import OpCase

ORDER = 3
# Those with the same rules as another one.
FIRST = {cases[0].id for cases in FUNCTIONS.values() if not cases[0].composed}


def directions(floats: Sequence[Any], rng: np.random.Generator) -> list[list[Any]]:
    """The derivatives of a curve through each array."""
    return [[_like(x, rng) for _ in range(ORDER)] for x in floats]


def _like(x: Any, rng: np.random.Generator) -> Any:
    drawn = rng.uniform(-1, 1, x.shape)
    return (drawn + 1j * rng.uniform(-1, 1, x.shape) if x.dtype.kind == "c" else drawn).astype(
        x.dtype
    )


def check(
    function: Callable[..., Any], floats: Sequence[Any], series: Sequence[Any], rtol: float
) -> None:
    rtol = max(rtol, *[16 * resolution(x.dtype) for x in floats])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a curve may leave where a function is defined
        try:
            expected = nested(function, floats, series)
        except NotDifferentiableError as error:
            with pytest.raises(NotDifferentiableError, match=re.escape(str(error)[:20])):
                gt.jet(function, floats, series)
        else:
            got = gt.jet(function, floats, series)
            assert_derivatives(got[1], expected, rtol)


@each(lambda case: case.differentiable)
def test_equals_nested_jvp(case: OpCase, thorough: bool, rng: np.random.Generator) -> None:
    function, floats = call_of(case).differentiable()
    if floats and (thorough or case.id in FIRST):
        check(function, floats, directions(floats, rng), 1e-9)


@pytest.mark.slow
@each(lambda case: case.differentiable and case.at)
def test_equals_nested_jvp_at_special_points(case: OpCase, rng: np.random.Generator) -> None:
    for at in case.at:
        function, floats = Call(case.function, with_arrays(at.args), at.params).differentiable()
        if floats:
            check(function, floats, directions(floats, rng), 1e-8)


def test_facts_of_products_and_quotients() -> None:
    """What is said to be a product is linear in each operand; a quotient reads no numerator."""
    for op in registry:
        count = len(op.vjps)
        if op.facts.product:
            for i in range(count):
                kept = op.keeps(tuple(n == i for n in range(count)))
                assert not kept[0], op
                assert not kept[i + 1], op
        if op.facts.divisors and count:
            reads = op.keeps(tuple(n in op.facts.divisors for n in range(count)))[1:]
            assert all(n in op.facts.divisors for n, read in enumerate(reads) if read), op
