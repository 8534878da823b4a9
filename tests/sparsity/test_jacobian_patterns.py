"""Patterns of Jacobians: exact where they should be, and never too small."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import gradtape as gt
import our_scipy
from every_case import CASES, FURTHER
from gradtape.errors import PatternError
from gradtape.sparsity.dependencies import DenseBlock
from gradtape.sparsity.pattern import SparsityPattern
from opcall import noting
from opcases.case import OpCase
from random_code import random_program
from random_control import control_program
from random_ways import floating_inputs
from real_cases import of_real_arrays

BANDED = np.eye(6) + np.eye(6, k=1) - np.eye(6, k=-2)
PLACES = np.array([4, 0, 0, -1, 2])
MASK = np.array([True, False, True, True, False, False])
X = np.array([0.3, -1.2, 0.7, 2.1, -0.4, 1.6])


def pattern_of(function: Callable[..., Any], *args: Any) -> Any:
    return gt.jacobian_sparsity(function)(*args)


# ---- exact --------------------------------------------------------------------------------------

EXACT: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[1:-1:2] * 3.0,
    "negative step": lambda x: x[::-1] ** 2,
    "stencil": lambda x: x[2:] - 2.0 * x[1:-1] + x[:-2],
    "roll": lambda x: np.roll(x, 2) * x,
    "pad": lambda x: np.pad(x, (2, 1)) ** 2,
    "pad wrap": lambda x: np.pad(x, 2, mode="wrap"),
    "pad reflect": lambda x: np.pad(x, 2, mode="reflect"),
    "reshape": lambda x: x.reshape(2, 3).T * np.ones((3, 2)),
    "broadcast": lambda x: np.broadcast_to(x[:3], (2, 3)) + x[3:5, None],
    "cumsum": lambda x: np.cumsum(x * x),
    "cumsum along an axis": lambda x: np.cumsum(x.reshape(2, 3), axis=0),
    "cumprod": lambda x: np.cumprod(x),
    "sum": lambda x: np.sum(x.reshape(2, 3) ** 2, axis=0),
    "mean of rows": lambda x: np.mean(x.reshape(3, 2), axis=1, keepdims=True),
    "prod": lambda x: np.prod(x.reshape(2, 3), axis=1),
    "take": lambda x: np.take(x, PLACES) ** 2,
    "index": lambda x: x.reshape(3, 2)[PLACES[:3] % 3, 1] ** 2,
    "mask": lambda x: x[MASK] ** 3,
    "where": lambda x: np.where(MASK, x, 2.0 * x[::-1]),
    "factor with zeros": lambda x: x * MASK,
    "where of a condition": lambda x: np.where(x[::-1] * 0.0 == 0.0, x, x),
    "stack": lambda x: np.stack([x[:3], x[3:] ** 2], axis=1),
    "concatenate": lambda x: np.concatenate([x[3:], np.zeros(2), np.exp(x[:2])]),
    "banded matrix": lambda x: BANDED @ x,
    "from the left": lambda x: x @ BANDED,
    "matrix of the argument": lambda x: x.reshape(2, 3) @ BANDED[:3, :2],
    "einsum of rows": lambda x: np.einsum("ij,ij->i", x.reshape(2, 3), x.reshape(2, 3) + 1.0),
    "einsum": lambda x: np.einsum("ij,kj->ik", x.reshape(3, 2)[:2], x.reshape(3, 2)[1:]),
    "outer": lambda x: np.outer(x[:2], x[2:4]),
    "assignment": lambda x: gt.setitem(x, x[0] * x[1], 2),
    "assignment of a part": lambda x: gt.setitem(x, x[:3] ** 2, slice(3, None)),
    "assignment at places": lambda x: gt.setitem(x, x[:3] ** 2, np.array([5, 1, 5])),
    "adding at places": lambda x: gt.index_add(x, PLACES[:3], x[3:] ** 2, 0),
    "diagonal": lambda x: np.diag(x)[1:3],
    "triangle": lambda x: np.tril(np.outer(x[:3], x[3:])),
    "diff": lambda x: np.diff(x, n=2),
    "repeat, tile": lambda x: np.repeat(x[:2], 2) * np.tile(x[2:4], 2),
    "convolve": lambda x: np.convolve(x, np.array([1.0, 0.0, -2.0]), "same"),
    "convolve with itself": lambda x: our_scipy.signal.convolve(x[:3], x[3:]),
    "sparse product": lambda x: our_scipy.sparse.from_scipy(scipy.sparse.csr_array(BANDED)) @ x,
    "stored numbers": lambda x: (
        our_scipy.sparse.csr_array((x, [0, 2, 1, 0, 1, 2], [0, 2, 3, 6]), shape=(3, 3))
        @ np.array([1.0, 2.0, 3.0])
    ),
    "floor": lambda x: np.floor(x) * x[::-1],
    "detached": lambda x: x * gt.stop_gradient(x[::-1]),
    "argument itself": lambda x: x,
    "one number": lambda x: x[3],
    "softmax of rows": lambda x: gt.nn.softmax(x.reshape(2, 3), axis=1),
    "norm of rows": lambda x: gt.linalg.norm(x.reshape(2, 3), axis=1),
    "scan": lambda x: gt.scan(lambda c, t: (c + t, c * t), 1.0, x)[1],
    "loop": lambda x: gt.fori_loop(1, 6, lambda i, c: c * np.sin(x[i]), x[0]),
    "loop that reads neighbours": lambda x: gt.scan(
        lambda c, i: (c, c[i] * c[i + 1]), x, np.arange(5)
    )[1],
    "branch": lambda x: gt.cond(True, lambda y: y[::-1] * 2.0, lambda y: y * y * y[0], x),
    "complex": lambda x: np.real(np.exp(1j * x) * np.conj(np.exp(1j * x[::-1]))),
    "nothing": lambda x: np.sign(x) + 1.0,
    "vmap": lambda x: gt.vmap(lambda row: row[0] * row)(x.reshape(2, 3)),
    "compiled": lambda x: gt.jit(lambda y: y[1:] * y[:-1])(x),
    "many pieces": lambda x: np.stack([x[i % 6] * (i + 1.0) for i in range(100)]),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact(name: str, rng: Any) -> None:
    function = EXACT[name]
    found = pattern_of(function, X)
    assert found.blocks == ()
    expected = np.zeros(found.shape, bool)
    for point in (X, *rng.normal(size=(3, 6))):
        expected |= gt.jacrev(function)(point).reshape(found.shape) != 0
    np.testing.assert_array_equal(found.toarray(), expected)
    assert found.nnz == np.count_nonzero(expected)


def test_convolution_of_images(rng: Any) -> None:
    weights = rng.normal(size=(4, 2, 3, 3))
    weights[:, :, 0, 0] = 0.0
    for options in ({"padding": 1}, {"stride": 2, "dilation": 2, "padding": 2}, {"groups": 2}):
        kept = weights[:, :1] if "groups" in options else weights

        def function(x: Any, kept: Any = kept, options: Any = options) -> Any:
            return gt.nn.conv2d(x, kept, np.ones(4), **options)

        found = pattern_of(function, rng.normal(size=(1, 2, 6, 5)))
        dense = gt.jacrev(function)(rng.normal(size=(1, 2, 6, 5))).reshape(found.shape)
        np.testing.assert_array_equal(found.toarray(), dense != 0)
        # The transpose: the gradient of Σ c·conv(x), by a c that is the argument.
        turned = pattern_of(
            lambda c, f=function: gt.vjp(f, np.ones((1, 2, 6, 5)))[1](c)[0],
            np.ones(function(np.ones((1, 2, 6, 5))).shape),
        )
        np.testing.assert_array_equal(turned.toarray(), found.toarray().T)


@pytest.mark.parametrize("options", [{"padding": 1}, {"stride": 2, "dilation": 2}, {"groups": 2}])
def test_gradients_of_weights_of_convolutions(options: Any, rng: Any) -> None:
    """Of one batch, and of each sample: they are linear in the images, and in the cotangents."""
    kept = rng.normal(size=(4, 1 if "groups" in options else 2, 3, 2))
    images = rng.normal(size=(3, 2, 6, 5))

    def of_weights(x: Any, ct: Any) -> Any:
        return gt.vjp(lambda w: gt.nn.conv2d(x, w, **options), kept)[1](ct)[0]

    def of_each(x: Any, ct: Any) -> Any:
        return gt.vmap(of_weights)(x[:, None], ct[:, None])

    cts = rng.normal(size=gt.nn.conv2d(images, kept, **options).shape)
    for function in (of_weights, of_each):
        for argnum in (0, 1):
            found = gt.jacobian_sparsity(function, argnum)(images, cts)
            assert found.blocks == ()
            dense = gt.jacrev(function, argnum)(images, cts).reshape(found.shape)
            np.testing.assert_array_equal(found.toarray(), dense != 0)


# ---- never too small ----------------------------------------------------------------------------


def dense_jacobian(function: Callable[[Any], Any], args: tuple[Any, ...]) -> Any:
    parts = zip(gt.jacrev(function)(args), args, strict=True)
    return np.concatenate([np.reshape(part, (len(part), x.size)) for part, x in parts], axis=1)


def check_case(case: OpCase) -> None:
    function, args = of_real_arrays(case)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        if not args or not function(args).size:
            return
        dense = dense_jacobian(function, args)
        found = pattern_of(function, args).toarray()
    assert not (found < (dense != 0)).any()


DIFFERENTIABLE = [case for case in CASES if case.differentiable]


@pytest.mark.parametrize("first", range(8))
def test_contains_every_nonzero_of_some_cases(first: int) -> None:
    for case in [case for case in DIFFERENTIABLE if case.id not in FURTHER][first::40]:
        with noting(f"in the case {case.id}"):
            check_case(case)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(16))
def test_contains_every_nonzero_of_all_cases(first: int) -> None:
    for case in DIFFERENTIABLE[first::16]:
        with noting(f"in the case {case.id}"):
            check_case(case)


def of_floats(
    function: Callable[..., Any], chosen: Sequence[int], args: Sequence[Any]
) -> tuple[Callable[..., Any], list[Any]]:
    """A function of a tuple of floats, and of others, that gives one vector; its arguments."""

    def flat(floats: Any, *others: Any) -> Any:
        first, second = iter(floats), iter(others)
        outs = function(*(next(first if n in chosen else second) for n in range(len(args))))
        kept = [gt.asarray(out) for out in outs if np.result_type(out).kind == "f"]
        return gt.concatenate([gt.reshape(out, -1).astype(np.float64) for out in kept])

    others = [x for n, x in enumerate(args) if n not in chosen]
    return flat, [tuple(args[n] for n in chosen), *others]


def check_products(function: Any, chosen: Any, args: Any, tolerance: float, rng: Any) -> None:
    """J(x)·v, from the compressed matrix, is what the function's own tangents say."""
    flat, (floats, *others) = of_floats(function, chosen, args)
    tangents = tuple(rng.normal(size=x.shape).astype(x.dtype) for x in floats)
    with np.errstate(all="ignore"):
        matrix = gt.sparse_jacobian(flat)(floats, *others)
        expected = gt.jvp(lambda some: flat(some, *others), (floats,), (tangents,))[1]
    vector = np.concatenate([np.reshape(part, -1) for part in tangents])
    scale = (abs(matrix) @ abs(vector)).max(initial=1e-30)
    np.testing.assert_allclose(matrix @ vector, expected, rtol=0, atol=tolerance * scale)


def numbers(end: int, quick: int) -> list[Any]:
    """Numbers of programs; all but the first few are slow."""
    return [pytest.param(n, marks=pytest.mark.slow) if n >= quick else n for n in range(end)]


@pytest.mark.parametrize("seed", numbers(400, 12))
def test_random_programs(seed: int, rng: Any) -> None:
    program = random_program(seed, floating=True)
    if chosen := floating_inputs(program):
        tolerance = 1e-3 if program.single else 1e-9
        check_products(program.function(), chosen, program.arguments(), tolerance, rng)


@pytest.mark.parametrize("seed", numbers(150, 4))
def test_random_loops_and_branches(seed: int, rng: Any) -> None:
    program = control_program(seed)
    tolerance = 4e-3 if program.dtype == "float32" else 1e-8
    check_products(program.function(), program.floating, program.arguments(), tolerance, rng)


# ---- what is said of dense blocks ---------------------------------------------------------------


def test_dense_blocks_are_named_with_their_lines() -> None:
    def function(x: Any) -> Any:
        y = np.sort(x)
        return y + x[np.argmax(x)]

    found = pattern_of(function, X)
    assert found.toarray().all()
    (sort, gather) = found.blocks
    first = function.__code__.co_firstlineno
    assert sort.op == "sort"
    assert sort.line.endswith(f"test_jacobian_patterns.py:{first + 1}")
    assert gather.line.endswith(f"test_jacobian_patterns.py:{first + 2}")
    assert "index" in gather.why
    text = str(found)
    assert text.startswith("pattern of 6 × 6 with 36 places (100 %); dense blocks:\n  sort at ")
    assert repr(found) == "<pattern of 6 × 6 with 36 places>"


def test_dense_blocks_of_hessians_are_named_with_lines_of_the_function() -> None:
    def function(x: Any) -> Any:
        y = gt.linalg.expm(x.reshape(2, 2))
        return np.sum(y * np.sort(x)[0])

    found = gt.hessian_sparsity(function)(np.ones(4))
    first = function.__code__.co_firstlineno
    lines = {block.op: block.line.rpartition(":")[2] for block in found.blocks}
    assert lines["matrix_function"] == str(first + 1)
    assert lines["sort"] == str(first + 2)
    # What only the backward pass calls has no line.
    assert lines["matrix_function_change"] == ""
    assert "  matrix_function_change: all" in str(found)


def test_a_line_is_listed_once_and_long_lists_are_cut() -> None:
    def function(x: Any) -> Any:
        for step in range(12):
            x = np.sort(x + step)
        return x

    found = pattern_of(function, X)
    assert len(found.blocks) == 1
    blocks = [DenseBlock("sort", f"file.py:{n}", "why") for n in range(12)]
    text = str(SparsityPattern(found.matrix, blocks))
    assert "file.py:7: why" in text
    assert text.endswith("\n  and 4 more")


def test_index_of_the_argument_is_dense_along_its_axis_only() -> None:
    def function(x: Any) -> Any:
        table = x.reshape(3, 2)
        return table[np.argmax(x[:2])] * 2.0

    found = pattern_of(function, X)
    expected = [[True, False] * 3, [False, True] * 3]
    np.testing.assert_array_equal(found.toarray(), expected)


def test_lines_along_an_axis_and_matrices_of_a_stack_stay_apart(rng: Any) -> None:
    blocks = np.kron(np.eye(2), np.ones((4, 4))).astype(bool)
    x = rng.normal(size=(2, 4))
    for function in (
        lambda x: np.sort(x, axis=1),
        lambda x: gt.fft.dct(x, axis=1),
        lambda x: gt.logcumsumexp(x, axis=1),
        lambda x: gt.linalg.expm(x.reshape(2, 2, 2)),
        lambda x: gt.linalg.solve(x.reshape(2, 2, 2) + 3.0 * np.eye(2), np.eye(2)),
        lambda x: gt.linalg.cholesky(x.reshape(2, 2, 2) + 9.0 * np.eye(2)) + 0.0 * x[:, :1, None],
    ):
        found = pattern_of(function, x)
        assert len(found.blocks) == 1
        np.testing.assert_array_equal(found.toarray(), blocks)


def test_columns_of_equations_stay_apart(rng: Any) -> None:
    matrix = rng.normal(size=(3, 3)) + 4.0 * np.eye(3)
    for function in (
        lambda x: gt.linalg.solve(matrix, x),
        lambda x: gt.linalg.solve_triangular(matrix, x, lower=True),
    ):
        found = pattern_of(function, rng.normal(size=(3, 2)))
        np.testing.assert_array_equal(found.toarray(), np.tile(np.eye(2, dtype=bool), (3, 3)))
        assert "column" in found.blocks[0].why
    both = pattern_of(
        lambda x: gt.linalg.solve(x[0] + 4.0 * np.eye(3), x), rng.normal(size=(2, 3, 3))
    )
    dense = gt.jacrev(lambda x: gt.linalg.solve(x[0] + 4.0 * np.eye(3), x))(
        rng.normal(size=(2, 3, 3))
    )
    np.testing.assert_array_equal(both.toarray(), dense.reshape(both.shape) != 0)


def test_results_with_a_stack_of_their_own(rng: Any) -> None:
    """One matrix for a stack of equations: its factors, which are kept, are not a stack."""

    def total(x: Any) -> Any:
        found = gt.linalg.solve(x[:4].reshape(2, 2) + 4.0 * np.eye(2), x[4:].reshape(2, 2, 2))
        return np.sum(np.sin(found))

    x = rng.normal(size=12)
    expected = gt.hessian(total)(x) != 0
    assert not (gt.hessian_sparsity(total)(x).toarray() < expected).any()


# ---- loops and branches -------------------------------------------------------------------------


def test_long_loops_are_followed_until_nothing_changes() -> None:
    def function(x: Any) -> Any:
        return gt.scan(lambda c, t: (0.5 * c + np.sin(c) * t, c[0]), x, np.ones(50_000))

    last = pattern_of(lambda x: function(x)[0], X)
    np.testing.assert_array_equal(last.toarray(), np.eye(6, dtype=bool))
    assert "steps" in last.blocks[0].why
    results = pattern_of(lambda x: function(x)[1], X)
    assert results.nnz == 50_000
    assert set(results.matrix.indices) == {0}


def test_loops_of_unknown_length() -> None:
    def shifted(x: Any) -> Any:
        def step(state: Any) -> Any:
            count, y = state
            return count + 1, np.concatenate([y[:1], y[:-1] * y[1:]])

        return gt.while_loop(lambda state: state[0] < 3, step, (0, x))[1]

    found = pattern_of(shifted, X)
    np.testing.assert_array_equal(found.toarray(), np.tri(6, dtype=bool))
    assert found.blocks[0].op == "while"


def test_loops_that_keep_on_growing_are_dense() -> None:
    def function(x: Any) -> Any:
        return gt.while_loop(lambda y: y[0] < 9.0, lambda y: np.roll(y, 1) + y, x)

    found = pattern_of(function, np.ones(150))
    assert found.nnz == 150 * 150
    assert any("dense" in block.why for block in found.blocks)


def test_branches_depend_on_what_any_of_them_reads() -> None:
    found = pattern_of(lambda x: gt.cond(x[0] > 0, lambda y: y, lambda y: y[::-1] ** 2, x), X)
    np.testing.assert_array_equal(found.toarray(), (np.eye(6) + np.eye(6)[::-1]) != 0)


# ---- functions with rules of their own ----------------------------------------------------------


def test_rules_of_users_count_not_what_they_compute() -> None:
    @gt.custom_vjp
    def rounded(x: Any) -> Any:
        return np.round(x)

    @rounded.defvjp
    def straight_through(ct: Any, out: Any, x: Any) -> Any:
        return (ct[::-1],)

    found = pattern_of(lambda x: rounded(x) * 2.0, X)
    np.testing.assert_array_equal(found.toarray(), np.eye(6, dtype=bool)[::-1])
    assert found.blocks == ()

    @gt.custom_jvp
    def doubled(x: Any) -> Any:
        return 2.0 * np.sum(x) + x

    @doubled.defjvp
    def only_own(tangents: Any, out: Any, x: Any) -> Any:
        return 2.0 * tangents[0]

    np.testing.assert_array_equal(pattern_of(doubled, X).toarray(), np.eye(6, dtype=bool))


def test_rules_that_look_at_values_are_dense() -> None:
    @gt.custom_vjp
    def squared(x: Any) -> Any:
        return x * x

    @squared.defvjp
    def rule(ct: Any, out: Any, x: Any) -> Any:
        return (2.0 * ct * x if float(x[0]) > 0 else ct,)

    found = pattern_of(squared, X)
    assert found.toarray().all()
    assert "rules cannot be traced" in found.blocks[0].why


def test_functions_on_the_host_have_the_pattern_of_their_rules() -> None:
    def function(x: Any, **rules: Any) -> Any:
        return gt.host_call(lambda a: a**2, x, x, **rules)

    found = pattern_of(lambda x: function(x, vjp=lambda ct, out, x: (2.0 * ct * x,)), X)
    np.testing.assert_array_equal(found.toarray(), np.eye(6, dtype=bool))
    without = pattern_of(function, X)
    assert without.toarray().all()
    assert len(without.blocks) == 1


def test_huge_patterns_are_refused() -> None:
    with pytest.raises(PatternError, match=r"got a pattern of 1,600,000,000 places.*gt\.jacobian"):
        pattern_of(np.sort, np.ones(40_000))
