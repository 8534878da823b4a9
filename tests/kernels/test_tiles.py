"""Ops on large arrays: native kernels give what NumPy gives, and only where they are meant to."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from every_case import CASES
from gradtape import kernels as all_kernels
from gradtape.compiler.cpu.runtime import tile_loop
from gradtape.core.kernels import INSTALLED, LARGE, Task, goes_by_parts
from gradtape.core.op import registry
from gradtape.kernels import tile_kernels
from opcall import Call, is_floating
from opcases.case import OpCase

# No multiple of a tile, so that the last one overlaps.
SIZE = LARGE + 777


TILED = {op.name for op in registry if goes_by_parts(op)}


def is_wanted(case: OpCase) -> bool:
    return case.elementwise and case.differentiable and not TILED.isdisjoint(case.names)


ELEMENTWISE = [case for case in CASES if is_wanted(case)]
ROWS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: gt.sum(x, -1),
    "sum-keepdims": lambda x: gt.sum(x, -1, keepdims=True),
    "sum-all": gt.sum,
    "sum-all-keepdims": lambda x: gt.sum(x, keepdims=True),
    "sum-first": lambda x: gt.sum(x, 0),
    "mean": lambda x: gt.mean(x, -1),
    "max": lambda x: gt.max(x, -1),
    "max-all": gt.max,
    "min": lambda x: gt.min(x, -1),
    "prod": lambda x: gt.prod(1 + x / 100, -1),
    "var": lambda x: gt.var(x, -1),
    "std": lambda x: gt.std(x, -1, ddof=1),
    "norm": lambda x: gt.linalg.vector_norm(x, axis=-1),
    "logsumexp": lambda x: gt.logsumexp(x, -1),
    "softmax": gt.softmax,
    "log_softmax": gt.log_softmax,
    "cumsum": lambda x: gt.cumsum(x, -1),
    "cumprod": lambda x: gt.cumprod(1 + x / 100, -1),
    "cumprod-zeros": lambda x: gt.cumprod(gt.round(2 * x) / 2, -1),
}
OF_THREE_AXES: dict[str, Callable[[Any], Any]] = {
    "sum-first-two": lambda x: gt.sum(x, (0, 1), keepdims=True),
    "sum-last-two": lambda x: gt.sum(x, (1, 2)),
    "max-first-two": lambda x: gt.max(x, (0, 1)),
    "prod-first-two": lambda x: gt.prod(1 + x / 100, (0, 1)),
}


@pytest.fixture
def kernels() -> Iterator[Any]:
    """Fresh kernels, so that a test can look at those it made."""
    fresh = all_kernels.Kernels()
    before = INSTALLED.kernels
    INSTALLED.__dict__["kernels"] = fresh
    yield fresh
    INSTALLED.__dict__["kernels"] = before


def tiles_of(kernels: Any) -> Any:
    return next(each for each in kernels.strategies if each.name == "tiles")


def whole_of(kernels: Any) -> Any:
    return next(each for each in kernels.strategies if each.name == "whole")


def used(kernels: Any) -> set[str]:
    """The names of the ops that kernels were made for."""
    made = kernels.tiled.made.items()
    return {key[0].name for key, kernel in made if kernel is not None}


def value_and_gradients(function: Callable[..., Any], arrays: list[Any]) -> list[Any]:
    """What a function gives, and the gradients of a weighted sum of it."""
    leaves = [gt.tensor(x, requires_grad=is_floating(x)) for x in arrays]
    out = function(*leaves)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, out.shape).astype(out.dtype)
    out.backward(gt.Tensor(weights))
    return [out.detach().numpy()] + [
        leaf.grad.numpy() for leaf in leaves if leaf.requires_grad and leaf.grad is not None
    ]


def assert_as_without(kernels: Any, function: Callable[..., Any], arrays: list[Any]) -> None:
    """The same as NumPy computes it, to a few units of the largest number."""
    with np.errstate(all="ignore"):
        got = value_and_gradients(function, arrays)
        INSTALLED.__dict__["kernels"] = None
        expected = value_and_gradients(function, arrays)
        INSTALLED.__dict__["kernels"] = kernels
    for one, other in zip(got, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        finite = np.abs(other[np.isfinite(other)]).max(initial=1.0)
        eps = np.finfo(other.dtype).eps
        np.testing.assert_allclose(one, other, rtol=64 * eps, atol=64 * eps * finite)


def in_turn(number: int, dtype: Any) -> Any:
    """A mark of most: every other case is tried in one and the other precision by turns."""
    return () if number % 4 == 2 * (dtype is np.float64) else pytest.mark.slow


@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        pytest.param(case, dtype, id=f"{case.id}-{dtype.__name__}", marks=in_turn(number, dtype))
        for number, case in enumerate(ELEMENTWISE)
        for dtype in (np.float32, np.float64)
    ],
)
def test_elementwise(kernels: Any, case: OpCase, dtype: Any) -> None:
    args = [np.resize(x, SIZE) if isinstance(x, np.ndarray) else x for x in case.args]
    args = [x.astype(dtype) if isinstance(x, np.ndarray) and is_floating(x) else x for x in args]
    call = Call(case.function, args, case.params)
    assert_as_without(kernels, lambda *arrays: call(*arrays)[0], call.arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*ROWS, *OF_THREE_AXES])
def test_rows(kernels: Any, name: str, dtype: Any) -> None:
    x = np.random.default_rng(0).normal(size=(2, 91, 203)).astype(dtype)
    assert_as_without(kernels, (ROWS | OF_THREE_AXES)[name], [x])
    reduced = {"sum-first": set(), "norm": {"vector_norm"}, "std": {"std"}}
    expected = reduced.get(name, {name.partition("-")[0]})
    assert expected <= used(kernels)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(91, 406), (2, 91, 203), (36_946,)], ids=str)
@pytest.mark.parametrize("function", [gt.cumsum, gt.cumprod])
def test_scans_along_other_axes(kernels: Any, function: Any, shape: Any, dtype: Any) -> None:
    x = 1 + np.random.default_rng(0).normal(size=shape).astype(dtype) / 100
    x.reshape(-1)[::7_777] = 0
    assert_as_without(kernels, lambda x: function(x, max(0, len(shape) - 2)), [x])
    assert {key[0][0].name for key in whole_of(kernels)._programs.made} == {function.__name__}


@pytest.mark.parametrize("strided", [False, True])
def test_cross_products(kernels: Any, strided: bool) -> None:
    arrays = [*np.random.default_rng(0).normal(size=(2, 30_000, 4 if strided else 3))]
    assert_as_without(kernels, lambda x, y: gt.cross(x[:, :3], y[:, :3]), arrays)
    programs = whole_of(kernels)._programs.made if strided else kernels.tiled.made
    assert any(program is not None for program in programs.values())


@pytest.mark.parametrize("name", ROWS)
def test_raw_arrays_give_the_bits_of_tensors(kernels: Any, name: str) -> None:
    x = np.random.default_rng(0).normal(size=(2, 91, 203))
    np.testing.assert_array_equal(ROWS[name](x), ROWS[name](gt.tensor(x)).numpy())


@pytest.mark.parametrize("shape", [(300, 200), (4, 100, 200), (4096, 16), (SIZE,)])
def test_what_rows_share_is_summed_by_kernels(kernels: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape), rng.normal(size=shape[1:][-1:])]
    assert_as_without(kernels, lambda x, y: x * y, arrays)
    assert_as_without(kernels, lambda x, y: gt.exp(x) - y, arrays)
    pulls = [pull for pull in tiles_of(kernels).rules._pulls.values() if pull is not None]
    assert any(pull.sums is not None for pull in pulls)
    assert not any(pull.left for pull in pulls)


def test_no_array_is_kept(kernels: Any) -> None:
    x, w = np.ones((300, 201)), np.ones(201)
    gone = [weakref.ref(x), weakref.ref(w)]
    gt.grad(lambda x, w: gt.sum(x * w) + gt.sum(x), argnums=(0, 1))(x, w)
    del x, w
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_where_objects_are_laid_out_otherwise(
    kernels: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tile_loop, "native_layout", lambda: None)
    x = np.random.default_rng(0).normal(size=(300, 200))
    assert_as_without(kernels, lambda x: gt.softmax(gt.tanh(x) * 2.5), [x])
    assert used(kernels) >= {"tanh", "softmax", "multiply"}


@pytest.mark.parametrize("name", ["imag", "real", "angle", "abs"])
def test_parts_of_complex_numbers(kernels: Any, name: str) -> None:
    function = getattr(gt, name)
    for size in (100, SIZE):
        z = np.linspace(1, 2, size) * (1 + 2j)
        got = gt.vjp(function, z)[1](np.ones(size))[0]
        INSTALLED.__dict__["kernels"] = None
        expected = gt.vjp(function, z)[1](np.ones(size))[0]
        INSTALLED.__dict__["kernels"] = kernels
        np.testing.assert_allclose(got, expected, rtol=1e-14, atol=1e-15)


def test_numbers_take_the_dtype_of_the_result(kernels: Any) -> None:
    condition = np.ones(SIZE, np.float32)
    for other in (0.7, np.ones(SIZE, np.int64)):
        out = gt.where(
            gt.tensor(condition), 0.1, other if isinstance(other, float) else gt.tensor(other)
        )
        assert out.dtype == np.float64
        np.testing.assert_array_equal(out.numpy(), 0.1)


def test_a_rule_is_one_pass(kernels: Any) -> None:
    x = gt.tensor(np.linspace(-3, 3, SIZE), requires_grad=True)
    gt.gelu(x).backward()
    assert used(kernels) == {"gelu"}


def test_numbers_are_read_when_the_kernel_runs(kernels: Any) -> None:
    x = np.linspace(0.5, 2, SIZE)
    for factor in range(1, 100):
        np.testing.assert_array_equal((gt.tensor(x) * (factor / 7)).numpy(), x * (factor / 7))
    assert len(kernels.tiled.made) == 1


@pytest.mark.parametrize("exponent", [2, 3, 2.0, -1, 0.5, 0, 1, 2.7, -3])
def test_powers(kernels: Any, exponent: float) -> None:
    x = np.linspace(0.5, 2, SIZE)
    assert_as_without(kernels, lambda x: x**exponent, [x])
    assert_as_without(kernels, lambda x: 1.5**x, [x])


def test_an_identity_is_not_copied(kernels: Any) -> None:
    x = np.ones(SIZE)
    add = registry["add"]
    given = tiles_of(kernels).run(Task(add, (x, None, None, None), {}, (True, True)))
    assert given[0] is x
    assert given[1] is x


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((SIZE, 2))[:, 0],
        np.asfortranarray(np.zeros((300, 300))),
        np.zeros(SIZE, np.complex128),
        np.zeros(SIZE, ">f8"),
    ],
    ids=["strided", "columns", "complex", "byteorder"],
)
def test_other_arrays_are_left_to_numpy(kernels: Any, x: Any) -> None:
    np.testing.assert_array_equal(gt.exp(gt.Tensor(x)).numpy(), np.exp(x))
    assert not used(kernels)


BROADCAST = [
    ((300, 200), (200,)),
    ((300, 200), (300, 1)),
    ((300, 200), (1, 200)),
    ((4, 100, 200), (200,)),
    ((4, 100, 200), (4, 100, 1)),
    ((4, 100, 200), (100, 1)),
    ((4, 100, 200), (1, 100, 200)),
    ((300, 1), (200,)),
    ((300, 200), ()),
    ((200, 200), (200,)),
    ((1, 40_000), (1, 1)),
    ((20_000, 3), (3,)),
]


@pytest.mark.parametrize("number", range(len(BROADCAST)), ids=[str(pair) for pair in BROADCAST])
def test_broadcasting(kernels: Any, number: int, thorough: bool) -> None:
    functions = [gt.add, gt.subtract, gt.multiply, gt.divide, gt.power, gt.maximum]
    dtypes = [np.float32, np.float64]
    # Sums and products have two ops each: one of them for these shapes, one for the next.
    for dtype in dtypes if thorough else [dtypes[number // 2 % 2]]:
        rng = np.random.default_rng(0)
        arrays = [np.asarray(rng.uniform(1, 2, shape), dtype) for shape in BROADCAST[number]]
        for function in functions if thorough else functions[number % 2 :: 2]:
            assert_as_without(kernels, function, arrays)
            assert_as_without(kernels, lambda x, y, f=function: f(y, x), arrays)


def test_a_gradient_has_the_shape_of_its_own_operand(kernels: Any) -> None:
    # All of these are one and the same row to a kernel.
    x, row = np.ones((1024, 33)), np.arange(33.0)
    for shape in ((33,), (1, 33), (33,)):
        assert_as_without(kernels, gt.multiply, [x, row.reshape(shape)])
    repeated = gt.Tensor(np.broadcast_to(np.ones(1), (33,))).set_requires_grad(True)
    (gt.tensor(x) * repeated).backward(gt.Tensor(x))
    np.testing.assert_array_equal(repeated.grad.numpy(), np.full(33, 1024.0))
    wide = x.reshape(1, 1024, 1, 33)
    for shape in ((1, 1, 1, 33), (33,), (1, 1, 33)):
        assert_as_without(kernels, gt.multiply, [wide, row.reshape(shape)])


def test_rows_and_columns_are_broadcast_by_kernels(kernels: Any) -> None:
    x, row, column = np.ones((300, 200)), np.arange(200.0), np.arange(300.0)[:, None]
    np.testing.assert_array_equal((gt.tensor(x) + gt.tensor(row)).numpy(), x + row)
    np.testing.assert_array_equal((gt.tensor(x) * gt.tensor(column)).numpy(), x * column)
    assert used(kernels) == {"add", "multiply"}


def test_numbers_beside_two_precisions(kernels: Any) -> None:
    x, y = np.zeros(SIZE, np.float32), np.zeros(SIZE)
    out = gt.where(gt.tensor(x) > 1, gt.tensor(y), 0.1)
    np.testing.assert_array_equal(out.numpy(), 0.1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param((1024,), (1024, 1024), marks=pytest.mark.slow),
        ((200,), (200, 200)),
        ((1024, 1), (1024, 1024)),
        ((), (300, 300)),
    ],
)
def test_axes_of_the_same_size_are_not_mixed_up(
    kernels: Any, one: tuple[int, ...], other: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(1, 2, one), rng.uniform(1, 2, other)]
    assert_as_without(kernels, lambda x, y: x * y, arrays)
    assert_as_without(kernels, lambda x, y: y - x, arrays)
    assert_as_without(kernels, lambda x, y: gt.where(y > 1.5, x, y), arrays)


@pytest.mark.parametrize(
    "shape",
    [(200, 200), pytest.param((1024, 1024), marks=pytest.mark.slow), (1, 40_000), (40_000, 1)],
)
def test_normalisation_with_weights(kernels: Any, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape), rng.normal(size=shape[1]), rng.normal(size=shape[1])]
    assert_as_without(kernels, lambda x, w, b: gt.nn.layer_norm(x, w.shape, w, b), arrays)
    assert_as_without(kernels, lambda x, w, b: gt.nn.rms_norm(x, w.shape, w) + b, arrays)


@pytest.mark.parametrize(
    ("number", "shape"),
    list(enumerate([(1, 40_000), (40_000, 1), (3, 20_000), (20_000, 3), (2, 2, 9000)])),
)
def test_rows_of_any_length(
    kernels: Any, number: int, shape: tuple[int, ...], thorough: bool
) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    # Every other function, and for the next shape those between.
    for name in list(ROWS) if thorough else list(ROWS)[number % 2 :: 2]:
        assert_as_without(kernels, ROWS[name], [x])


def test_floating_point_errors_are_raised_if_asked_for(kernels: Any) -> None:
    x = gt.tensor(np.zeros(SIZE))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        gt.log(x)
    assert np.isneginf(gt.log(x).numpy()).all()


def test_a_parameter_that_always_changes_is_not_compiled_for_ever(
    kernels: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tile_kernels.MOST_VARIANTS < 100
    monkeypatch.setattr(tile_kernels, "MOST_VARIANTS", 8)
    x = gt.tensor(np.linspace(-1, 1, SIZE))
    for i in range(tile_kernels.MOST_VARIANTS + 3):
        slope = 0.01 * i
        expected = np.where(x.numpy() > 0, x.numpy(), slope * x.numpy())
        np.testing.assert_allclose(gt.leaky_relu(x, slope).numpy(), expected, rtol=1e-15)
    assert len(kernels.tiled.made) == tile_kernels.MOST_VARIANTS


def test_second_order(kernels: Any) -> None:
    x = np.linspace(-2, 2, SIZE)
    slope = gt.grad(lambda x: gt.sum(gt.grad(lambda y: gt.sum(gt.sin(y) * y))(x)))(x)
    np.testing.assert_allclose(slope, 2 * np.cos(x) - x * np.sin(x), rtol=1e-12, atol=1e-14)


def test_release_frees_and_gives_the_same(kernels: Any) -> None:
    x = gt.tensor(np.linspace(-2, 2, SIZE), requires_grad=True)
    gt.sum(gt.tanh(x)).backward(release=True)
    np.testing.assert_allclose(x.grad.numpy(), 1 - np.tanh(x.detach().numpy()) ** 2, atol=1e-15)


def test_same_bits_with_any_number_of_threads(kernels: Any) -> None:
    x = np.random.default_rng(0).normal(size=(500, 333)).astype(np.float32)
    before, found = gt.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            gt.set_num_threads(threads)
            found.append([f(x) for f in ROWS.values()] + [gt.gelu(x)])
    finally:
        gt.set_num_threads(before)
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_threads_at_once(kernels: Any) -> None:
    x = np.linspace(-2, 2, SIZE)
    expected, wrong = np.exp(x), []

    def work() -> None:
        for _ in range(20):
            if not np.allclose(gt.exp(gt.tensor(x)).numpy(), expected, rtol=1e-14):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_switched_off_by_the_environment(thorough: bool) -> None:
    program = (
        "import sys, numpy as np, gradtape as gt; gt.exp(gt.tensor(np.ones(10**5)));"
        "print('gradtape.kernels' in sys.modules)"
    )
    # That they are there otherwise, other tests show.
    for value, loaded in (("0", "False"), ("1", "True"))[: 2 if thorough else 1]:
        env = {**os.environ, "GRADTAPE_EAGER_KERNELS": value, "GRADTAPE_WITHOUT": ""}
        done = subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == loaded
