"""16-bit floats in compiled code: converted to float32 as they are read, rounded after each op."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradtape as gt
from every_case import CASES, cast
from gradtape import config
from gradtape.compiler.cpu.gemm.gemm import Gemm
from gradtape.compiler.cpu.llvm.link import Cpu, levels
from gradtape.compiler.cpu.target import CpuTarget, host_target
from gradtape.compiler.program import NativeFunction, Program, temporary_bytes
from gradtape.core.aval import aval_of
from gradtape.graph.trace import trace
from opcall import Call, noting, resolution
from random_code import random_program
from test_compiled_ops import NOT_TRACED, value_and_pullback

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES = [BFLOAT16, np.dtype(np.float16)]
OLD = "x86-64-v2"  # has no instructions for float16

# The CPU at hand, and one that converts by arithmetic on bits.
TARGETS = [host_target, *([lambda: CpuTarget(Cpu(OLD, ""))] if OLD in levels() else [])]

halves = pytest.mark.parametrize("dtype", HALVES, ids=str)


def needs(piece: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not config.uses(piece), reason=f"native {piece} are switched off")


pytestmark = needs("halves")


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)


def assert_same_bits(got: Any, expected: Any) -> None:
    """Equal dtypes and bits, but for those of NaN."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype
    with np.errstate(invalid="ignore"):
        nan = np.isnan(expected.astype(np.float64))
        np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), nan)
    bits = [x.view(f"u{x.itemsize}")[~nan] for x in (got, expected)]
    np.testing.assert_array_equal(*bits)


def run(function: Callable[..., Any], *arrays: Any, target: Any = None) -> Any:
    traced = trace(function, [aval_of(x) for x in arrays])
    program = Program(traced.graph, target=target)
    assert program.native is not None
    return program(*arrays, *(capture.value for capture in traced.captures))[0]


def eager(function: Callable[..., Any], *arrays: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*map(gt.tensor, arrays)).numpy()


# ---- conversions --------------------------------------------------------------------------------


def every_number(dtype: Any) -> Any:
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


@halves
@pytest.mark.parametrize("target", TARGETS, ids=["host", OLD][: len(TARGETS)])
def test_every_number_is_converted_exactly(dtype: Any, target: Any) -> None:
    x = every_number(dtype)
    found = run(lambda x: x.astype(np.float32), x, target=target())
    assert_same_bits(found, x.astype(np.float32))


@halves
@pytest.mark.parametrize("target", TARGETS, ids=["host", OLD][: len(TARGETS)])
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_numbers_are_rounded_to_the_nearest(dtype: Any, target: Any, source: Any) -> None:
    with np.errstate(all="ignore"):
        x = every_number(dtype).astype(source)
        between = (x[:-1] + x[1:]) / 2  # ties, and numbers next to them
        near = [np.nextafter(between, source(to)) for to in (-np.inf, np.inf)]
        x = np.concatenate([x, between, *near])
        expected = x.astype(dtype)
    assert_same_bits(run(lambda x: x.astype(dtype), x, target=target()), expected)


@halves
def test_integers_and_truth_values(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(-(2**40), 2**40, 1000) >> np.arange(1000) % 40
    with np.errstate(over="ignore"):
        assert_same_bits(run(lambda x: x.astype(dtype), x), x.astype(dtype))
    y = numbers((100,), dtype)
    y[::3] = 0
    np.testing.assert_array_equal(run(lambda y: y.astype(bool), y), y.astype(bool))
    tens = y * np.array(10, dtype)  # old releases of ml_dtypes make float32 of y * 10
    np.testing.assert_array_equal(run(lambda y: (y * 10).astype(np.int16), y), np.trunc(tens))


# ---- ops ----------------------------------------------------------------------------------------

EXACT: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda x, y: (x * y + 0.1) / (x - 0.3) - y * 2,
    "choices": lambda x, y: np.where(x > y, x, 0.7) + np.maximum(x, y) * gt.nn.relu(y),
    "moves": lambda x, y: np.concatenate([x, y.T[:, :37].T[:5]])[::2, 1:],
    "gather": lambda x, y: x[np.array([3, 5, 1])] - y[0],
    "pad": lambda x, y: np.pad(x, 1).astype(np.float32),
    "wider": lambda x, y: x * np.float32(0.1) + y,
    "largest": lambda x, y: np.max(x, axis=0) - np.min(y, axis=0),
}


@halves
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("target", TARGETS, ids=["host", OLD][: len(TARGETS)])
def test_each_op_rounds_as_eager_code_does(dtype: Any, name: str, target: Any) -> None:
    x, y = numbers((37, 41), dtype), numbers((37, 41), dtype, 1)
    expected = eager(EXACT[name], x, y)
    assert_same_bits(run(EXACT[name], x, y, target=target()), expected)


@halves
def test_sums_are_rounded_once(dtype: Any) -> None:
    x = np.full((3000, 8), 0.3, dtype)
    exact = x.astype(np.float64).sum(axis=0).astype(dtype)
    assert_same_bits(run(lambda x: np.sum(x, axis=0), x), exact)


def close(got: Any, expected: Any, ulps: float) -> None:
    got, expected = gt.tree.flatten(got)[0], gt.tree.flatten(expected)[0]
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        # Eager losses of plain arrays may stay in the float32 they are computed in.
        rough = max(resolution(one.dtype), resolution(other.dtype))
        a, b = (x.astype(np.complex128 if x.dtype.kind == "c" else float) for x in (one, other))
        finite = np.abs(b[np.isfinite(b)]).max(initial=1.0)
        np.testing.assert_allclose(a, b, rtol=ulps * rough, atol=ulps * rough * finite)


PARTS = 8


@halves
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))]
)
def test_op_cases(dtype: Any, part: int, thorough: bool) -> None:
    compiled = 0
    for case in CASES[part :: PARTS if thorough else 20 * PARTS]:
        if case.function.__name__ in NOT_TRACED or case.raises:
            continue
        with np.errstate(all="ignore"):
            call = Call(case.function, cast(case.args, dtype), case.params)
        run = value_and_pullback(call) if case.differentiable else call
        try:
            with np.errstate(all="ignore"):
                expected = run(*call.arrays)
        except gt.errors.GradtapeError:
            continue  # not for 16 bits
        except TypeError:
            continue  # SciPy or NumPy refuses
        with noting(f"of {case.id}"):
            close(gt.jit(run)(*call.arrays), expected, 8)
        compiled += 1
    assert compiled


def test_random_programs() -> None:
    for seed in range(70_000, 70_020):
        program = random_program(seed, floating=True)
        arrays = [
            x.astype(BFLOAT16) if getattr(x, "dtype", None) == np.float32 else x
            for x in program.arguments()
        ]
        with noting(program.source), np.errstate(all="ignore"):
            expected = program.function()(*map(gt.tensor, arrays))
            found = gt.jit(program.function())(*map(gt.tensor, arrays))
            close([x.numpy() for x in found], [x.numpy() for x in expected], 16)


# ---- products -----------------------------------------------------------------------------------


@needs("products")
@halves
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 7, 3), (1, 70, 33), (70, 1, 33), (130, 70, 300)])
@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
def test_products_are_those_of_float32_rounded_once(
    dtype: Any, sizes: tuple[int, int, int], flags: tuple[bool, bool]
) -> None:
    m, n, k = sizes
    x = numbers((k, m) if flags[0] else (m, k), dtype)
    y = numbers((n, k) if flags[1] else (k, n), dtype, 1)

    def product(x: Any, y: Any) -> Any:
        return (x.T if flags[0] else x) @ (y.T if flags[1] else y)

    for target in (None, *(make() for make in TARGETS[1:])):
        wide = run(product, x.astype(np.float32), y.astype(np.float32), target=target)
        assert_same_bits(run(product, x, y, target=target), wide.astype(dtype))
        mixed = run(product, x, y.astype(np.float32), target=target)
        assert_same_bits(mixed, wide)


PAIRED = [(16, 4, 2), (130, 72, 300), (33, 20, 1030), (100, 256, 3000), (17, 516, 64)]


@needs("products")
@pytest.mark.parametrize("sizes", PAIRED)
@pytest.mark.parametrize("transposed", [False, True])
def test_products_in_pairs_are_right(sizes: tuple[int, int, int], transposed: bool) -> None:
    m, n, k = sizes
    x, y = numbers((m, k), BFLOAT16), numbers((n, k) if transposed else (k, n), BFLOAT16, 1)

    def product(x: Any, y: Any) -> Any:
        return x.astype(np.float32) @ (y.T if transposed else y).astype(np.float32)

    exact = product(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(run(product, x, y), exact, atol=1e-5 * np.sqrt(k))
    stack = run(product, np.stack([x, x * 2]), y) if not transposed else run(product, x, y)[None]
    np.testing.assert_allclose(stack[0], exact, atol=1e-5 * np.sqrt(k))
    np.testing.assert_allclose(stack[-1], exact * len(stack), atol=2e-5 * np.sqrt(k))


@needs("products")
@pytest.mark.parametrize("sizes", [(16, 4, 64), (130, 72, 300), (33, 20, 1030), (100, 256, 3000)])
@pytest.mark.parametrize("transposed", [False, True])
def test_first_factors_are_put_in_pairs(sizes: tuple[int, int, int], transposed: bool) -> None:
    m, n, k = sizes
    x, y = numbers((k, m), BFLOAT16), numbers((n, k) if transposed else (k, n), BFLOAT16, 1)

    def product(x: Any, y: Any) -> Any:
        return x.T.astype(np.float32) @ (y.T if transposed else y).astype(np.float32)

    exact = product(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(run(product, x, y), exact, atol=1e-5 * np.sqrt(k))


@needs("products")
def test_products_of_a_batch_in_pairs_are_right() -> None:
    x, y = numbers((5, 24, 16), BFLOAT16), numbers((5, 32, 16), BFLOAT16, 1)
    found = run(lambda x, y: x @ y.transpose(0, 2, 1), x, y)
    rough = resolution(BFLOAT16) / resolution(np.dtype(np.float64))
    exact = np.einsum("bik,bjk->bij", *(a.astype(np.float64) for a in (x, y)))
    close([found], [exact], rough)
    z = y.reshape(5, 16, 32)
    found = run(lambda x, z: x @ z, x, z)
    exact = np.einsum("bik,bkj->bij", *(a.astype(np.float64) for a in (x, z)))
    close([found], [exact], rough)


@pytest.mark.parametrize(
    ("features", "stored", "sizes", "pairs"),
    [
        ("+avx512f,+avx512vl,+avx512bf16", "bfloat16", (64, 64, 64), True),
        ("+avx512f,+avx512vl,+avx512bf16", "float16", (64, 64, 64), False),
        ("+avx512f,+avx512vl,+avx512bf16", "bfloat16", (64, 64, 63), False),
        ("+avx512f,+avx512vl,+avx512bf16", "bfloat16", (4, 64, 64), False),
        ("+avx512f,+avx512vl,+avx512bf16", "bfloat16", (64, 66, 64), False),
        ("+avx512f,+avx512vl", "bfloat16", (64, 64, 64), False),
    ],
)
def test_which_products_are_in_pairs(
    features: str, stored: str, sizes: tuple[int, int, int], pairs: bool
) -> None:
    block = Gemm("float", *sizes, stored=(stored, stored)).form(Cpu("x86-64", features)).block
    assert block.pairs is pairs
    assert block.k == (sizes[2] // 2 if pairs else sizes[2])


@needs("products")
@halves
def test_operands_of_products_are_not_copied(dtype: Any) -> None:
    traced = trace(lambda x, y: np.sum(x @ y), [aval_of(numbers((512, 512), dtype))] * 2)
    # The product in float32 alone.
    assert temporary_bytes(traced.graph) < 1.1 * 4 * 512 * 512


@needs("products")
@halves
def test_products_of_a_batch(dtype: Any) -> None:
    x, y = numbers((4, 9, 17), dtype), numbers((4, 9, 17), dtype, 1)
    found = run(lambda x, y: x @ y.transpose(0, 2, 1), x, y)
    wide = np.einsum("bik,bjk->bij", *(a.astype(np.float64) for a in (x, y)))
    close([found], [wide], resolution(dtype) / resolution(wide.dtype))


# ---- training -----------------------------------------------------------------------------------


def layers_loss(weights: Any, x: Any) -> Any:
    for w in weights:
        x = gt.nn.gelu(x @ w.astype(x.dtype), approximate="tanh")
    return np.mean(x.astype(np.float32) ** 2)


def images_loss(weights: Any, x: Any) -> Any:
    for w in weights:
        x = gt.nn.relu(gt.nn.conv2d(x, w.astype(x.dtype), padding=1))
    return np.mean(x.astype(np.float32) ** 2)


@halves
@pytest.mark.parametrize("loss", [layers_loss, images_loss])
def test_gradients_are_those_of_eager_code(dtype: Any, loss: Any) -> None:
    shape, kernel = ((20, 16), (16, 16)) if loss is layers_loss else ((2, 4, 9, 9), (4, 4, 3, 3))
    weights = [numbers(kernel, np.float32, seed) / 3 for seed in range(3)]
    x = numbers(shape, dtype)
    step = gt.value_and_grad(loss)
    expected = step([gt.tensor(w) for w in weights], gt.tensor(x))
    found = gt.jit(step)(weights, x)
    rough = resolution(dtype) / resolution(np.dtype(np.float32))
    close(found, gt.tree.map(lambda t: t.numpy(), expected), 8 * rough)


@needs("products")
@halves
def test_activations_take_half_the_memory(dtype: Any) -> None:
    weights = [np.ones((64, 64), np.float32)] * 8
    bytes_of = [
        temporary_bytes(
            trace(
                lambda x, *ws: gt.grad(layers_loss)(list(ws), x)[0],
                [aval_of(np.ones((4096, 64), own)), *map(aval_of, weights)],
            ).graph
        )
        for own in (dtype, np.float32)
    ]
    assert bytes_of[0] <= 0.6 * bytes_of[1]


@needs("products")
@halves
def test_what_goes_from_part_to_part_has_16_bits(dtype: Any) -> None:
    def loss(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = gt.nn.gelu(gt.sort(x, axis=1) @ w)
        return np.sum(x.astype(np.float32))

    x, w = numbers((200, 64), dtype), numbers((64, 64), dtype, 1)
    traced = trace(gt.grad(loss), [aval_of(x), aval_of(w)])
    program = Program(traced.graph)
    parts = [step.part for step in program.steps if isinstance(step, NativeFunction)]
    assert len(parts) > 3
    passed = [v for part in parts for v in part.outputs if v.dtype == np.float32]
    assert not [v.aval for v in passed if v.shape == x.shape]
    close(gt.jit(gt.grad(loss))(x, w), eager(gt.grad(loss), x, w), 16)


@halves
def test_large_convolutions_get_and_give_16_bits(dtype: Any) -> None:
    def loss(x: Any, w: Any, bias: Any) -> Any:
        x = gt.nn.relu(gt.nn.conv2d(x, w, bias, padding=1))
        x = gt.nn.relu(gt.nn.conv2d(gt.nn.max_pool2d(x, 2), w, bias, padding=1))
        return np.sum(x.astype(np.float32))

    # Too large for a product of columns: the convolutions are parts of their own.
    x, w = numbers((8, 32, 48, 48), dtype), numbers((32, 32, 3, 3), dtype, 1)
    bias = numbers((32,), dtype, 2)
    step = gt.grad(loss)
    traced = trace(step, [aval_of(x), aval_of(w), aval_of(bias)])
    program = Program(traced.graph)
    eager_nodes = [n for n in program.graph.nodes if n.op.facts.samples]
    assert any(node.op.name == "conv_bias" for node in eager_nodes)
    images = [v for n in eager_nodes for v in (*n.operands, *n.outputs) if len(v.shape) == 4]
    assert {value.dtype for value in images} == {dtype}
    close(gt.jit(step)(x, w, bias), eager(step, x, w, bias), 16)


def test_values_are_freed_after_their_last_part() -> None:
    made: list[Any] = []

    def look(x: Any) -> Any:
        out = np.array(x)
        alive.append(sum(ref() is not None for ref in made))
        made.append(weakref.ref(out))
        return out

    def chain(x: Any) -> Any:
        for _ in range(6):
            x = gt.host_call(look, x, x, vjp=lambda ct, _x: (ct,)) * 2.0
        return x

    alive: list[int] = []
    compiled, x = gt.jit(chain), np.arange(10.0)
    np.testing.assert_array_equal(compiled(x), x * 64)
    assert max(alive) <= 1


# ---- around it ----------------------------------------------------------------------------------


@halves
def test_arguments_and_results_of_every_form(dtype: Any) -> None:
    function = gt.jit(lambda x, n: {"sum": np.sum(x) * n, "same": x, "strided": x.T * 2})
    x = numbers((6, 4), dtype)
    for given in (x, np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], gt.tensor(x)):
        out = function(given, 0.5)
        assert_same_bits(np.asarray(out["strided"]), x.T * dtype.type(2))
        assert_same_bits(np.asarray(out["same"]), x)
        assert np.asarray(out["sum"]).dtype == dtype
    number = gt.jit(lambda n: n * 2)(dtype.type(1.5))
    assert (number, number.dtype) == (3, dtype)


LOOPS: dict[str, Callable[..., Any]] = {
    "fori": lambda x: gt.fori_loop(0, 5, lambda _i, x: x * x - 0.7, x),
    "while": lambda x: gt.while_loop(lambda x: np.sum(x.astype(np.float32)) < 900, _onward, x),
    "cond": lambda x: gt.cond(np.max(x) > 1, lambda x: x * 2, lambda x: x - 1, x),
    "scan": lambda x: gt.scan(lambda c, row: (gt.tanh(c + row), c * row), x[0], x)[1],
}


def _onward(x: Any) -> Any:
    return abs(x) * 2 + 1


@needs("loops")
@halves
@pytest.mark.parametrize("name", LOOPS)
def test_loops_carry_them(dtype: Any, name: str) -> None:
    function = gt.jit(LOOPS[name])
    for shape in ((9, 3), (9, 40)):
        x = numbers(shape, dtype)
        assert_same_bits(function(x), eager(LOOPS[name], x))
        assert not function.explain(x).eager


@needs("loops")
@halves
def test_gradients_of_a_loop_are_native(dtype: Any) -> None:
    gradient = gt.grad(lambda x: np.sum(LOOPS["scan"](x).astype(np.float32)))
    x = numbers((9, 5), dtype)
    compiled = gt.jit(gradient)
    close(compiled(x), eager(gradient, x), 8)
    assert not compiled.explain(x).eager


@halves
def test_switched_off_they_run_eagerly(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = numbers((37, 41), dtype), numbers((37, 41), dtype, 1)
    expected = gt.jit(EXACT["arithmetic"])(x, y)
    monkeypatch.setenv("GRADTAPE_WITHOUT", "halves")
    function = gt.jit(lambda x, y: EXACT["arithmetic"](x, y))
    assert_same_bits(function(x, y), expected)
    assert f"no native code for {dtype}" in str(function.explain(x, y))


@halves
def test_debug_mode_accepts_what_is_compiled(dtype: Any) -> None:
    x, y = numbers((37, 41), dtype), numbers((41, 30), dtype, 1)
    gt.jit(lambda x, y: gt.nn.softmax(x @ y + 1), debug=True)(x, y)


def test_numbers_of_the_grid_stay_eager() -> None:
    x = numbers((10,), BFLOAT16)
    up = np.full_like(x, 10)
    assert_same_bits(gt.jit(np.nextafter)(x, up), np.nextafter(x, up))
    half = x.astype(np.float16)
    assert_same_bits(
        gt.jit(np.nextafter)(half, up.astype(np.float16)), np.nextafter(half, np.float16(10))
    )
