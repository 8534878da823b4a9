"""The rules of `simplify`, each by its name: where they apply, and what looks alike but is not.

All of them must keep every bit of the results, on NaN, both zeros, infinities and subnormal numbers
as well; only the sign and payload of NaN are free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.op import registry
from gradtape.graph.passes.dead import dead
from gradtape.graph.passes.rules import RULES, Rule
from gradtape.graph.passes.simplify import simplify
from gradtape.graph.verify import verify
from gradtape.ops.select import mask
from graphcall import assert_same_bits, graph_of, run_nodes, specials

Function = Callable[..., Any]

F = ("float64", "float32")
I = ("int64", "int32", "uint8")  # noqa: E741 - kinds of dtypes
B = ("bool",)
C = ("complex128",)


def arguments(dtype: str) -> tuple[Any, Any, Any]:
    """All pairs of special numbers, in a shape with several axes, and a condition."""
    numbers = specials(dtype)
    x, y = (a.reshape(numbers.size, 1, numbers.size) for a in np.meshgrid(numbers, numbers))
    return x, y, np.arange(x.size).reshape(x.shape) % 3 == 0


def spying(rule: Rule, fired: list[str]) -> Rule:
    """The rule, noting its name whenever something comes of it."""

    def apply(call: Any) -> Any:
        found = rule.apply(call)
        if found is not None:
            assert found.aval == call.aval, f"{rule.name} changes {call.aval} to {found.aval}"
            fired.append(rule.name)
        return found

    return rule._replace(apply=apply)


def check_rule(name: str, function: Function, dtype: str) -> bool:
    """Whether a rule applies to a function; values are compared either way."""
    args = arguments(dtype)
    graph = graph_of(function, *args)
    expected = run_nodes(graph, args)
    fired: list[str] = []
    alone = simplify(graph, [spying(rule, fired) for rule in RULES if rule.name == name])
    for simpler in (alone, dead(alone), simplify(graph)):
        verify(simpler)
        assert_same_bits(run_nodes(simpler, args), expected)
    return bool(fired)


# ---- rules --------------------------------------------------------------------------------------

# Functions of x, y and a condition c to which a rule applies, for some dtypes.
APPLIES: list[tuple[str, Sequence[str], Function]] = [
    ("x + 0", F, lambda x, y, c: x + -0.0),
    ("x + 0", F, lambda x, y, c: -np.zeros_like(x[:, :, :1]) + x),
    ("x + 0", F, lambda x, y, c: x[0, 0] + -np.zeros_like(x)),
    ("x + 0", I + B, lambda x, y, c: 0 + x),
    ("x - 0", F + I, lambda x, y, c: x - 0),
    ("x - 0", F, lambda x, y, c: x - np.zeros_like(x)),
    ("x * 1", F + I + B, lambda x, y, c: x * 1),
    ("x * 1", F, lambda x, y, c: np.ones_like(x) * x[0]),
    ("x * 1", ("float32",), lambda x, y, c: x * np.float64(1.0)),
    ("x * 1", ("float32",), lambda x, y, c: x * (1 + 1e-12)),
    ("x * 1", I, lambda x, y, c: 1.0 * x),
    ("x * -1", F, lambda x, y, c: x * -1),
    ("x * -1", ("int64", "int32"), lambda x, y, c: -1 * x),
    ("x * -1", I, lambda x, y, c: x * -np.ones_like(x, dtype=np.float64)),
    ("n * 0", I + B, lambda x, y, c: x * np.zeros_like(x)),
    ("x / 1", F + I, lambda x, y, c: x / 1),
    ("x / 2^k", F + I, lambda x, y, c: x / 4),
    ("x / 2^k", F, lambda x, y, c: (x / -0.125, x[0] / (np.ones_like(x) * 2))),
    ("x / 2^k", ("float64",), lambda x, y, c: (x / 2.0**1022, x / 2.0**-1022)),
    ("x / 2^k", ("float32",), lambda x, y, c: (x / 2.0**126, x / 2.0**-126)),
    ("x ** 1", F + I, lambda x, y, c: x**1),
    ("x ** 2", F + I, lambda x, y, c: x**2),
    ("x ** 2", F, lambda x, y, c: x**2.0),
    ("x ** 3", F + I, lambda x, y, c: x**3),
    ("-(-x)", F + I + C, lambda x, y, c: np.negative(-x)),
    ("a + (-b)", F + I + C, lambda x, y, c: (x + -y, -x + y, -x[0] + y)),
    ("a + (-b)", ("float32",), lambda x, y, c: x.astype(np.float64) + -y),
    ("a - (-b)", F + I + C, lambda x, y, c: x - -y),
    ("identity", F + I + B, lambda x, y, c: (gt.copy(x), gt.stop_gradient(x))),
    ("identity", F + I, lambda x, y, c: +x),
    ("conj of real", F + I, lambda x, y, c: np.conj(x)),
    ("conj of conj", C, lambda x, y, c: np.conj(np.conj(x))),
    ("max(x, x)", F + I, lambda x, y, c: np.maximum(x, x) + np.minimum(x, x)),
    ("max(x, x)", F, lambda x, y, c: (gt.fmax(x, x), gt.fmin(x, x))),
    ("not not x", F, lambda x, y, c: ((x < y) ^ True) ^ True),
    ("not not x", F, lambda x, y, c: np.logical_not(~(x < y))),
    ("not not x", F, lambda x, y, c: np.logical_xor(True, np.logical_not(x < y))),
    ("not not x", F, lambda x, y, c: ~((x < y) ^ np.ones_like(c))),
    ("not x == y", F + I + B, lambda x, y, c: (x == y) ^ True),
    ("not x == y", F + I, lambda x, y, c: np.logical_not(x != y)),
    ("all bits", B, lambda x, y, c: (x | True, True & x, np.logical_or(x, True))),
    ("all bits", F, lambda x, y, c: np.logical_or(x, np.ones_like(x))),
    ("all bits", ("int64", "int32"), lambda x, y, c: (x & -1, x | -1)),
    ("all bits", ("uint8",), lambda x, y, c: (x & 255, 255 | x)),
    ("no bits", B, lambda x, y, c: (x | False, x & False, x ^ False)),
    ("no bits", B, lambda x, y, c: (np.logical_xor(False, x), np.logical_or(x, False))),
    ("no bits", I, lambda x, y, c: (x | 0, x & 0, x ^ 0, np.logical_and(x, False))),
    ("x & x", I + B, lambda x, y, c: (x & x, x | x)),
    ("x & x", B, lambda x, y, c: (np.logical_and(x, x), np.logical_or(x, x))),
    ("where(c, x, x)", F + I + B + C, lambda x, y, c: (lambda z: np.where(c, z, z))(x[0])),
    ("where(c, x, x)", F, lambda x, y, c: np.where(c, np.float32(0.1), np.float32(0.1))),
    ("where(known, x, y)", F + I + B, lambda x, y, c: np.where(True, x, y)),
    ("where(known, x, y)", F + I, lambda x, y, c: np.where(np.zeros_like(x), 7, y)),
    ("where(known, x, y)", F, lambda x, y, c: np.where(np.ones_like(c), x, y)),
    ("where(known, x, y)", F, lambda x, y, c: np.where(np.ones_like(c), -0.0, y)),
    ("where(known, x, y)", ("float32",), lambda x, y, c: np.where(True, x, y.astype(float))),
    ("where(not c, x, y)", F + I + B, lambda x, y, c: np.where(np.logical_not(c), x, y)),
    ("where(not c, x, y)", F, lambda x, y, c: np.where(c ^ True, x, 2.0)),
    ("mask(x, known)", F + I + B, lambda x, y, c: (mask(x, True), mask(x, False))),
    ("mask(x, known)", F, lambda x, y, c: mask(x[0], np.ones_like(c))),
    ("mask(x, known)", F, lambda x, y, c: mask(x, np.ones_like(x) == 0)),
    ("mask(0, c)", F + I, lambda x, y, c: mask(np.zeros_like(x), c)),
    ("mask(mask(x, c), c)", F + I, lambda x, y, c: mask(mask(x, c), c)),
    ("number for array", F, lambda x, y, c: (np.ones_like(x) * 3.0 - x, x < 2 * np.ones_like(x))),
    ("number for array", F, lambda x, y, c: np.where(c, np.ones_like(x) / 3.0, x)),
    ("number for array", F, lambda x, y, c: np.ones_like(x) / x),
    ("astype of the same", F + I + B + C, lambda x, y, c: x.astype(x.dtype)),
    ("astype of astype", ("float32",), lambda x, y, c: x.astype(float).astype(np.float32)),
    ("astype of astype", ("float32",), lambda x, y, c: x.astype(float).astype(np.float16)),
    ("astype of astype", F, lambda x, y, c: c.astype(x.dtype).astype(bool)),
    ("astype of astype", ("int32",), lambda x, y, c: x.astype(np.float64).astype(np.int32)),
    ("astype of astype", ("int32",), lambda x, y, c: x.astype(np.float64).astype(np.float32)),
    ("astype of astype", ("int32", "uint8"), lambda x, y, c: x.astype(int).astype(np.int8)),
    ("astype of astype", ("uint8",), lambda x, y, c: x.astype(np.float32).astype(np.uint8)),
    ("astype of astype", ("int32",), lambda x, y, c: x.astype(int).astype(bool)),
    ("reshape to the same", F + I + B + C, lambda x, y, c: x.reshape(x.shape)),
    ("reshape of reshape", F + I, lambda x, y, c: x.reshape(-1).reshape(1, -1)),
    ("transpose of transpose", F + I, lambda x, y, c: np.transpose(x.T, (1, 0, 2))),
    ("transpose of ones", F + I, lambda x, y, c: np.transpose(x, (1, 0, 2))),
    ("transpose of ones", F + I, lambda x, y, c: np.transpose(x, (0, 1, 2))),
    ("broadcast to the same", F, lambda x, y, c: np.broadcast_to(x, x.shape)),
    (
        "broadcast of broadcast",
        F,
        lambda x, y, c: np.broadcast_to(np.broadcast_to(x[0, 0], x[0].shape), x.shape),
    ),
    ("broadcast of reshape", F, lambda x, y, c: np.broadcast_to(x[:1].reshape(1, 1, -1), x.shape)),
    ("broadcast of reshape", F, lambda x, y, c: np.broadcast_to(np.squeeze(x[:1]), x.shape)),
    ("spread of nothing", F, lambda x, y, c: gt.grad(lambda x: (x.sum(1) * y[:, 0]).sum())(x)),
    ("getitem of everything", F + B, lambda x, y, c: (x[:], x[...], x[:, 0], x[:, None, :, :100])),
    ("put of everything", F, lambda x, y, c: gt.grad(lambda x: (x[:, 0] * y[:, 0]).sum())(x)),
    ("setitem of everything", F + I, lambda x, y, c: gt.setitem(x, y, ...)),
    ("setitem of everything", F + I, lambda x, y, c: gt.setitem(x, y[:, 0], (slice(None), 0))),
    ("setitem of everything", F + I, lambda x, y, c: gt.setitem(x, 3, slice(None))),
    ("flip of flip", F, lambda x, y, c: np.flip(np.flip(x, (0, 2)), (2, 0))),
    ("flip of ones", F, lambda x, y, c: np.flip(x, 1)),
    ("max of one", F + I + B, lambda x, y, c: (x.max(1), np.min(x, 1, keepdims=True))),
    ("max of one", F + I + B, lambda x, y, c: np.prod(x, axis=1)),
    ("max of one", F, lambda x, y, c: np.max(x, axis=())),
    ("sum of one", F + I + B, lambda x, y, c: (x.sum(1), np.mean(x, 1, keepdims=True))),
    ("sum of one", F, lambda x, y, c: np.sum(x, axis=())),
]

# Functions to which a rule must not apply: what looks alike, but is something else in some bit.
DOES_NOT_APPLY: list[tuple[str, Sequence[str], Function]] = [
    ("x + 0", F, lambda x, y, c: (x + 0.0, x + 0, np.zeros_like(x) + x)),
    ("x + 0", C, lambda x, y, c: x + -0.0),
    ("x + 0", F, lambda x, y, c: x + 1e-300 if x.dtype == np.float64 else x + 1e-40),
    ("x - 0", F, lambda x, y, c: x - -0.0),
    ("x - 0", F + I, lambda x, y, c: x - 1),
    ("x - 0", F, lambda x, y, c: 0.0 - x),
    ("x * 1", C, lambda x, y, c: x * 1),
    ("x * 1", F, lambda x, y, c: x * (1 + np.finfo(x.dtype).eps.item())),
    ("x * -1", C, lambda x, y, c: x * -1),
    ("x * -1", ("uint8",), lambda x, y, c: x * 255),
    ("n * 0", F, lambda x, y, c: x * 0),
    ("x / 1", C, lambda x, y, c: x / 1),
    ("x / 1", F, lambda x, y, c: 1 / x),
    ("x / 2^k", F, lambda x, y, c: (x / 3, x / 0.0, x / np.inf, x / -np.nan)),
    ("x / 2^k", ("float64",), lambda x, y, c: (x / 5e-324, x / 2.0**1023)),
    ("x / 2^k", ("float32",), lambda x, y, c: (x / 1e-45, x / 2.0**127)),
    ("x ** 1", F, lambda x, y, c: x ** (np.ones_like(x))),
    ("x ** 1", I, lambda x, y, c: x**1.0),
    ("x ** 2", F, lambda x, y, c: (x**0.5, x**-2, 2**x)),
    ("x ** 2", F, lambda x, y, c: x ** (2 * np.ones_like(x))),
    ("x ** 2", C, lambda x, y, c: x**2),
    ("x ** 3", F, lambda x, y, c: x ** np.float64(3.0)),
    ("-(-x)", F, lambda x, y, c: -(x - y)),
    ("a + (-b)", ("int32", "uint8"), lambda x, y, c: x.astype(np.int64) + -y),
    ("a + (-b)", ("int64",), lambda x, y, c: x.astype(np.float64) + -y),
    ("a + (-b)", F, lambda x, y, c: (x + 1j) + -y),
    ("a + (-b)", F, lambda x, y, c: -(x + y)),
    ("a - (-b)", ("int32", "uint8"), lambda x, y, c: x.astype(np.int64) - -y),
    ("a - (-b)", F, lambda x, y, c: -x - y),
    ("conj of real", C, lambda x, y, c: np.conj(x)),
    ("max(x, x)", F + I, lambda x, y, c: np.maximum(x, y)),
    ("not not x", F, lambda x, y, c: np.logical_not(np.logical_not(x))),
    ("not not x", I, lambda x, y, c: (x ^ 1) ^ 1),
    ("not not x", F, lambda x, y, c: ((x < y) ^ True) ^ c),
    ("not not x", F, lambda x, y, c: np.logical_not((x[0] < y[0]) ^ np.ones_like(c))),
    ("not x == y", F + I, lambda x, y, c: (x < y) ^ True),
    ("not x == y", F + I, lambda x, y, c: np.logical_not(x >= y)),
    ("all bits", I, lambda x, y, c: (x & 1, x | 1, np.logical_and(x, True))),
    ("all bits", B, lambda x, y, c: (x & False, x | y)),
    ("no bits", I, lambda x, y, c: (np.logical_or(x, False), np.logical_xor(x, False))),
    ("no bits", B, lambda x, y, c: (x & True, x ^ True)),
    ("x & x", I, lambda x, y, c: np.logical_and(x, x)),
    ("x & x", I + B, lambda x, y, c: x & y),
    ("where(c, x, x)", F, lambda x, y, c: (np.where(c, x, y), np.where(c, 0.0, -0.0))),
    ("where(known, x, y)", F, lambda x, y, c: np.where(c, x, y)),
    ("where(not c, x, y)", F, lambda x, y, c: np.where(np.logical_not(x), x, y)),
    ("where(not c, x, y)", F, lambda x, y, c: np.where(x < y, x, y)),
    ("mask(x, known)", F, lambda x, y, c: mask(x, c)),
    ("mask(0, c)", F, lambda x, y, c: mask(-np.zeros_like(x), c)),
    ("mask(0, c)", F + I, lambda x, y, c: mask(np.ones_like(x), c)),
    ("mask(mask(x, c), c)", F, lambda x, y, c: mask(mask(x, c), x < y)),
    ("number for array", F, lambda x, y, c: np.ones_like(x) * x[0]),
    ("number for array", F, lambda x, y, c: np.maximum(np.zeros_like(x), x)),
    ("astype of the same", F, lambda x, y, c: x.astype(np.float16)),
    ("astype of astype", F, lambda x, y, c: x.astype(np.float16).astype(x.dtype)),
    ("astype of astype", ("int64",), lambda x, y, c: x.astype(np.float64).astype(np.int64)),
    ("astype of astype", ("int32",), lambda x, y, c: x.astype(np.float32).astype(np.int32)),
    ("astype of astype", ("int64",), lambda x, y, c: x.astype(np.int8).astype(np.int64)),
    ("astype of astype", ("uint8",), lambda x, y, c: x.astype(np.float32).astype(np.int16)),
    ("astype of astype", I, lambda x, y, c: x.astype(bool).astype(x.dtype)),
    ("reshape to the same", F, lambda x, y, c: x.reshape(-1)),
    ("reshape of reshape", F, lambda x, y, c: x.T.reshape(-1)),
    ("transpose of transpose", F, lambda x, y, c: np.transpose(x, (2, 1, 0))),
    ("transpose of ones", F, lambda x, y, c: np.transpose(x, (2, 1, 0))),
    ("broadcast to the same", F, lambda x, y, c: np.broadcast_to(x, (2, *x.shape))),
    ("broadcast of reshape", F, lambda x, y, c: np.broadcast_to(x[0].reshape(-1, 1), (22, 22))),
    ("spread of nothing", F, lambda x, y, c: gt.grad(lambda x: (x.sum(0) * y[0]).sum())(x)),
    ("getitem of everything", F, lambda x, y, c: (x[1:], x[::-1], x[:, :, :-1], x[0])),
    ("put of everything", F, lambda x, y, c: gt.grad(lambda x: (x[1:] * y[1:]).sum())(x)),
    ("setitem of everything", F, lambda x, y, c: gt.setitem(x, y[1:], slice(1, None))),
    ("setitem of everything", F, lambda x, y, c: gt.setitem(x, y, slice(None, None, -1))),
    ("flip of flip", F, lambda x, y, c: np.flip(np.flip(x, 0), 2)),
    ("flip of ones", F, lambda x, y, c: np.flip(x, 0)),
    ("max of one", F, lambda x, y, c: x.max(0)),
    ("sum of one", F, lambda x, y, c: x.sum(2)),
    ("sum of one", C, lambda x, y, c: x.mean(1)),
]


def rows(table: list[tuple[str, Sequence[str], Function]]) -> list[Any]:
    return [
        pytest.param(name, function, dtype, id=f"{name}-{i}-{dtype}")
        for i, (name, dtypes, function) in enumerate(table)
        for dtype in dtypes
    ]


@pytest.mark.parametrize(("name", "function", "dtype"), rows(APPLIES))
def test_rule_applies_and_keeps_every_bit(name: str, function: Function, dtype: str) -> None:
    assert check_rule(name, function, dtype)


@pytest.mark.parametrize(("name", "function", "dtype"), rows(DOES_NOT_APPLY))
def test_rule_leaves_near_misses_alone(name: str, function: Function, dtype: str) -> None:
    assert not check_rule(name, function, dtype)


def test_every_rule_is_tested_and_named_once() -> None:
    names = [rule.name for rule in RULES]
    assert sorted(names) == sorted({name for name, _, _ in APPLIES})
    assert all(rule.why for rule in RULES)
    registered = set(registry)
    assert all(set(rule.ops) <= registered for rule in RULES)


def test_weak_arguments_stay_weak() -> None:
    # A Python number times 1 is a Python number, and weak; its cosine is NumPy's, and is not.
    graph = graph_of(lambda n, x: ((n * 1) * x, np.cos(n * 1) * x), 2.0, np.ones(3, np.float32))
    assert [output.dtype for output in graph.outputs] == [np.float32, np.float64]
    simple = dead(simplify(graph))
    verify(simple)
    assert [o.aval for o in simple.outputs] == [o.aval for o in graph.outputs]
    args = (0.1, np.ones(3, np.float32))
    assert_same_bits(run_nodes(simple, args), run_nodes(graph, args))


def test_rules_look_through_what_other_rules_leave() -> None:
    def function(x: Any) -> Any:
        ones = np.transpose(np.ones_like(x).reshape(-1).reshape(x.T.shape))
        kept = mask(x * ones, (ones != 0) | np.isfinite(x))
        return np.where(np.logical_not(ones == 2), np.negative(-kept), x / 3) ** 1

    graph = graph_of(function, np.ones((2, 3)))
    simple = dead(simplify(graph))
    assert simple.nodes == ()
    assert simple.outputs == simple.inputs


def test_simplify_is_linear_in_the_number_of_nodes() -> None:
    tried = 0

    def counting(rule: Rule) -> Rule:
        def apply(call: Any) -> Any:
            nonlocal tried
            tried += 1
            return rule.apply(call)

        return rule._replace(apply=apply)

    rules = [counting(rule) for rule in RULES]
    counts = []
    for length in (50, 100, 200):

        def function(x: Any, length: int = length) -> Any:
            for i in range(length):
                x = np.transpose(-x).reshape(-1).reshape(3, 3) + (-x) * (i % 2)
            return x

        graph = graph_of(function, np.ones((3, 3)))
        tried = 0
        simplify(graph, rules)
        counts.append(tried)
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])


def test_simplify_names_the_line_of_what_it_replaces() -> None:
    graph = graph_of(lambda x, y: x - (-y), np.ones(3), np.ones(3))
    (node,) = dead(simplify(graph)).nodes
    assert node.op.name == "add"
    assert node.line == graph.nodes[-1].line != ""
