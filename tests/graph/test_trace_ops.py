"""Every op case traced: what its graph gives is what eager code gives, and errors are the same.

Passes over these graphs keep every bit, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from every_case import FURTHER, call_of, each
from gradtape.core.lowering import Contraction
from gradtape.errors import AxisError, DTypeError, ShapeError
from gradtape.graph.passes.dead import dead
from gradtape.graph.passes.share import share
from gradtape.graph.passes.simplify import simplify
from gradtape.graph.trace import Trace
from gradtape.graph.verify import verify
from graphcall import assert_same_bits, run_nodes, run_trace, traced
from opcall import Call, assert_same
from opcases.case import OpCase, Raises


def check(function: Callable[..., Any], args: list[Any]) -> None:
    """The traced function gives the bits of the eager one, before and after passes."""
    with np.errstate(all="ignore"):
        expected = function(*args)
        result = traced(function, *args)
        got = run_trace(result, *args)
    # NumPy multiplies complex scalars otherwise than arrays, and BLAS rounds in another way where a
    # matrix lies in another way: turned and reversed ones are stored in order when they are run.
    products = any(isinstance(node.op.lower, Contraction) for node in result.graph.nodes)
    if products or any(np.iscomplexobj(value) for value in expected):
        assert_same(got, expected, 64 if products else 8)
    else:
        assert_same_bits(got, expected)
    check_passes(result, args)


def check_passes(result: Trace, args: list[Any]) -> None:
    inputs = [*args, *(np.asarray(capture.current()) for capture in result.captures)]
    graph = result.graph
    for one in (share, simplify, share, dead):
        graph = one(graph)
        verify(graph)
    assert_same_bits(run_nodes(graph, inputs), run_nodes(result.graph, inputs))


@each()
def test_value(case: OpCase) -> None:
    call = call_of(case)
    check(call, call.arrays)


@each(lambda case: case.differentiable)
def test_vjp(case: OpCase, thorough: bool) -> None:
    if case.id in FURTHER and not thorough:
        return
    function, floats = call_of(case).differentiable()
    with np.errstate(all="ignore"):
        cotangents = [np.array(out, order="C") for out in function(*floats)]

    def pull(*args: Any) -> list[Any]:
        return list(gt.vjp(function, *args[: len(floats)])[1](list(args[len(floats) :])))

    check(pull, [*floats, *cotangents])


# What is wrong with shapes and dtypes is known before the function runs; other errors depend on
# values (indices out of bounds, singular matrices) and come when it does.
KNOWN_BEFORE = (AxisError, DTypeError, ShapeError)
FOUND_WHEN_RUN = {"argmax-tie"}  # of no elements
# Arrays among the parameters are inputs of the trace: nobody looks at their elements.
NOT_LOOKED_AT = {"negative aweights", "are no counts"}


@each(lambda case: case.raises)
def test_bad_input_raises_the_same_error(case: OpCase) -> None:
    for bad in case.raises:
        if bad.match not in NOT_LOOKED_AT:
            check_bad_input(case, bad)


def check_bad_input(case: OpCase, bad: Raises) -> None:
    call = Call(case.function, bad.args, bad.params)

    def run() -> None:
        result = traced(call, *call.arrays)
        assert not issubclass(bad.error, KNOWN_BEFORE) or case.id in FOUND_WHEN_RUN
        run_trace(result, *call.arrays)

    with pytest.raises(bad.error), np.errstate(all="ignore"):
        run()
