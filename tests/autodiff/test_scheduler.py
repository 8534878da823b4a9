"""`tape.jacobian` and the choice between forward, reverse and mixed mode."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.autodiff.block_cover import cheapest_cover, components
from gradtape.errors import ArgumentError, DTypeError, NotDifferentiableError, TapeError

AUTO, FORWARD = gt.SchedulingStrategy.Auto, gt.SchedulingStrategy.Forward
REVERSE, MIXED = gt.SchedulingStrategy.Reverse, gt.SchedulingStrategy.Mixed
STRATEGIES = [AUTO, FORWARD, REVERSE, MIXED]
each = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.value)


def tape_with(strategy: Any = AUTO, **options: Any) -> gt.GradientTape:
    config = gt.SchedulerConfig(strategy=strategy, **options)
    return gt.GradientTape(persistent=True, scheduler=config)


def jacobian(function: Any, x: Any, strategy: Any = AUTO, **options: Any) -> tuple[Any, Any]:
    """The Jacobian of a function by a tape, and the schedule."""
    tape = tape_with(strategy, **options)
    watched = tape.watch(x)
    return np.asarray(tape.jacobian(function(watched), watched)), tape.schedule


# ---- programs: the Jacobian of each is also computed by jacfwd ----------------------------------

W = np.random.default_rng(0).normal(size=(12, 12)) / 4
A = np.random.default_rng(1).normal(size=(2, 12))
B = np.random.default_rng(2).normal(size=(12, 2))


def layers(x: Any, count: int = 3) -> Any:
    for _ in range(count):
        x = np.tanh(W @ x + 0.1)
    return x


def bow_tie(x: Any) -> Any:
    return layers(B @ np.sin(A @ layers(x)))


def two_waists(x: Any) -> Any:
    return layers(B @ (A @ layers(B @ (A @ layers(x)) * 0.5)))


def skip_over_waist(x: Any) -> Any:
    return B @ (A @ layers(x)) + x[::-1] * x


def waist_of_two_values(x: Any) -> Any:
    return np.outer(np.sum(x * x), np.arange(12.0))[0] * np.exp(np.sum(x) * 0.1)


def through_outputs(x: Any) -> Any:
    first, second = np.split(layers(x), 2)
    vectors, values = np.linalg.svd(np.outer(first, second) + np.diag(np.arange(6.0)))[:2]
    return layers(B @ np.stack([np.sum(values[:2]), np.sum(first * second)])) + vectors[0, 0] * 0


def indexed(x: Any) -> Any:
    y = layers(x) * 1.0
    y[2:4] = A @ x
    return np.concatenate([y[:5], y[3:]]) ** 2


PROGRAMS = {
    "one to many": (lambda t: np.exp(t * np.arange(9.0)), np.float64(0.3)),
    "many to one": (lambda x: np.sum(layers(x) ** 2), W[0]),
    "square": (layers, W[0]),
    "bow tie": (bow_tie, W[0]),
    "two waists": (two_waists, W[0]),
    "skip": (skip_over_waist, W[0]),
    "waist of two values": (waist_of_two_values, W[0]),
    "several outputs": (through_outputs, W[0]),
    "indexed": (indexed, W[0]),
    "matrices": (lambda x: (x @ x.T)[:, :2], W[:4]),
    "the source itself": (lambda x: x, W[0]),
    "empty": (lambda x: x[:0], W[0]),
}
each_program = pytest.mark.parametrize(("function", "x"), PROGRAMS.values(), ids=PROGRAMS)


@each
@each_program
def test_every_strategy_gives_the_same_jacobian(strategy: Any, function: Any, x: Any) -> None:
    found, schedule = jacobian(function, x, strategy)
    expected = gt.jacfwd(function)(x)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    if strategy in (FORWARD, REVERSE):
        assert schedule.mode == strategy.value


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "mixed"])
@each_program
def test_modes_of_jacobian_agree(mode: str, function: Any, x: Any) -> None:
    np.testing.assert_allclose(
        gt.jacobian(function, mode=mode)(x), gt.jacfwd(function)(x), rtol=1e-11, atol=1e-13
    )


# ---- the choice ---------------------------------------------------------------------------------


def test_few_inputs_go_forward_and_few_outputs_in_reverse() -> None:
    assert jacobian(lambda t: np.exp(t * np.ones(1000)), 0.5)[1].mode == "forward"
    assert jacobian(lambda x: np.sum(np.exp(x)), np.ones(1000))[1].mode == "reverse"
    assert jacobian(lambda t: np.exp(t[0] * np.ones(1000)) * t[1], np.ones(2))[1].mode == "forward"
    narrow = jacobian(lambda x: np.stack([np.sum(x**3), np.sum(np.sin(x))]), np.ones(1000))[1]
    assert narrow.mode == "reverse"


def test_a_bow_tie_is_cut_at_its_waist() -> None:
    w = np.random.default_rng(0).normal(size=(200, 200)) / 15
    down, up = w[:2], w[:, :2]

    def wide(x: Any) -> Any:
        for _ in range(4):
            x = np.tanh(w @ x)
        return x

    function, x = (lambda x: wide(up @ (down @ wide(x)))), np.linspace(-1, 1, 200)
    found, schedule = jacobian(function, x)
    np.testing.assert_allclose(found, gt.jacrev(function)(x), rtol=1e-9, atol=1e-15)
    assert schedule.mode == "mixed"
    (part,) = schedule.parts
    assert [cut.size for cut in part.cuts] == [2]
    assert part.costs["mixed"] < 0.2 * min(part.costs["forward"], part.costs["reverse"])
    assert "cut where 2 numbers pass: matmul[2]" in str(schedule)
    without = jacobian(function, x, enable_mixed_mode=False)[1]
    assert without.mode in ("forward", "reverse")
    assert "mixed" not in without.parts[0].costs


def test_several_waists_are_bracketed_by_cost() -> None:
    w = np.random.default_rng(0).normal(size=(150, 150)) / 12

    def function(x: Any) -> Any:
        for n in (3, 2, 4):
            x = w[:, :n] @ np.sin(w[:n] @ np.tanh(w @ x))
        return x

    found, schedule = jacobian(function, np.linspace(-1, 1, 150))
    expected = gt.jacrev(function)(np.linspace(-1, 1, 150))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    assert schedule.mode == "mixed"
    assert all(cut.size <= 4 for cut in schedule.parts[0].cuts)


def test_no_cut_where_a_source_passes_it() -> None:
    # Everything that passes has to be carried along: here the 12 numbers of x, too.
    assert jacobian(skip_over_waist, W[0], MIXED)[1].mode in ("forward", "reverse")


def test_thresholds_rule_a_mode_out() -> None:
    def function(x: Any) -> Any:
        return np.tanh(np.concatenate([x, x, x[:5]]) * 2.0)

    x = np.linspace(0.1, 1.0, 10)  # 25 × 10
    low = jacobian(function, x, forward_mode_threshold=2.5, reverse_mode_threshold=1.0)[1]
    assert list(low.parts[0].costs) == ["forward"]
    high = jacobian(function, x, forward_mode_threshold=30.0, reverse_mode_threshold=2.5)[1]
    assert list(high.parts[0].costs) == ["reverse"]
    assert high.mode == "reverse"
    both = jacobian(function, x)[1]
    assert set(both.parts[0].costs) == {"forward", "reverse"}
    assert both.mode == "forward"


def test_blocks_that_do_not_depend_on_each_other_are_parts_of_their_own() -> None:
    tape = tape_with()
    t, x = tape.watch(0.5), tape.watch(np.linspace(0.1, 1.0, 300))
    curve, total = np.exp(t * np.arange(300.0) / 300.0), np.sum(x**2)
    found = tape.jacobian({"curve": curve, "total": total}, [t, x])
    assert {part.mode for part in tape.schedule.parts} == {"forward", "reverse"}
    assert tape.schedule.mode == "mixed"
    np.testing.assert_allclose(np.asarray(found["total"][1]), 2 * np.linspace(0.1, 1.0, 300))
    assert not np.any(np.asarray(found["curve"][1]))
    assert found["curve"][1].shape == (300, 300)
    assert not np.any(np.asarray(found["total"][0]))


def test_sources_forward_and_targets_in_reverse_cover_all_blocks() -> None:
    # Temperature and weights; predictions do not depend on the weights of the other model.
    tape = tape_with()
    t, w = tape.watch(0.7), tape.watch(np.linspace(-1.0, 1.0, 400))
    curve = np.exp(t * np.arange(400.0) / 400.0)
    loss = np.sum(np.tanh(w * t) ** 2)
    found = tape.jacobian([curve, loss], [t, w])
    (part,) = tape.schedule.parts
    assert (part.mode, part.pushed, part.pulled) == ("mixed", (0,), (1,))
    assert "forward from sources 0" in str(tape.schedule)

    def function(t: Any, w: Any) -> Any:
        return [np.exp(t * np.arange(400.0) / 400.0), np.sum(np.tanh(w * t) ** 2)]

    expected = gt.jacrev(function, (0, 1))(0.7, np.linspace(-1.0, 1.0, 400))
    for row, own in zip(found, expected, strict=True):
        for block, other in zip(row, own, strict=True):
            np.testing.assert_allclose(np.asarray(block), other, rtol=1e-12, atol=1e-14)


def test_auto_goes_in_reverse_where_there_is_no_forward_mode() -> None:
    @gt.custom_vjp
    def doubled(x: Any) -> Any:
        return 2.0 * x

    doubled.defvjp(lambda ct, out, x: (2.0 * ct,))

    def function(t: Any) -> Any:
        return doubled(t * np.arange(1.0, 4.0))

    np.testing.assert_array_equal(gt.jacobian(function)(1.0), [2.0, 4.0, 6.0])
    assert gt.jacobian(function).schedule(1.0).mode == "reverse"
    with pytest.raises(NotDifferentiableError, match="forward-mode"):
        gt.jacobian(function, mode="forward")(1.0)
    tape = tape_with()
    t = tape.watch(1.0)
    np.testing.assert_array_equal(np.asarray(tape.jacobian(function(t), t)), [2.0, 4.0, 6.0])


# ---- which ways are covered ---------------------------------------------------------------------


def is_cover(blocks: Any, pulled: Any, pushed: Any) -> bool:
    return all(
        t in pulled or s in pushed
        for t, row in enumerate(blocks)
        for s, there in enumerate(row)
        if there
    )


def cheapest(rows: Any, columns: Any, blocks: Any) -> float:
    """The least weight of a cover, by trying all of them."""
    weights = []
    for pulled in itertools.product([False, True], repeat=len(rows)):
        chosen = {t for t, own in enumerate(pulled) if own}
        needed = {
            s
            for t, row in enumerate(blocks)
            if t not in chosen
            for s, there in enumerate(row)
            if there
        }
        weights.append(sum(rows[t] for t in chosen) + sum(columns[s] for s in needed))
    return min(weights)


def test_the_cover_is_the_cheapest(rng: Any) -> None:
    for _ in range(60):
        shape = rng.integers(1, 6, size=2)
        rows, columns = rng.integers(1, 20, shape[0]), rng.integers(1, 20, shape[1])
        blocks = (rng.random(shape) < 0.5).tolist()
        pulled, pushed = cheapest_cover(rows.tolist(), columns.tolist(), blocks)
        assert is_cover(blocks, pulled, pushed)
        weight = sum(rows[t] for t in pulled) + sum(columns[s] for s in pushed)
        assert weight == cheapest(rows, columns, blocks)


def test_components() -> None:
    assert components([0b001, 0b010, 0b011, 0b100, 0], 3) == [((0, 1, 2), (0, 1)), ((3,), (2,))]
    assert components([], 2) == []


# ---- random tapes -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_random_layered_graphs(seed: int) -> None:
    """All strategies agree on DAGs with narrow and wide layers, skips and several ends."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 3, 8, 12], size=rng.integers(4, 9))
    weights = [rng.normal(size=(m, n)) / np.sqrt(n) for n, m in itertools.pairwise(sizes)]
    skips = [bool(rng.random() < 0.3) for _ in weights]

    def function(x: Any, y: Any) -> Any:
        values = [x]
        for weight, skip in zip(weights, skips, strict=True):
            h = np.tanh(weight @ values[-1])
            if skip and len(values) > 1:
                other = values[rng_places[len(values)]]
                h = h * np.sum(other)
            values.append(h)
        return values[-1] * np.sum(y), values[len(values) // 2] + 0.0, y**2

    rng_places = rng.integers(0, 2, size=len(weights) + 1)
    args = rng.normal(size=sizes[0]), rng.normal(size=3)
    expected = gt.jacfwd(function, (0, 1))(*args)
    for strategy in STRATEGIES:
        tape = tape_with(strategy)
        watched = [tape.watch(arg) for arg in args]
        found = tape.jacobian(function(*watched), tuple(watched))
        for row, own in zip(found, expected, strict=True):
            for block, other in zip(row, own, strict=True):
                np.testing.assert_allclose(np.asarray(block), other, rtol=1e-10, atol=1e-12)


# ---- tape.jacobian ------------------------------------------------------------------------------


@each
def test_sources_may_depend_on_each_other(strategy: Any) -> None:
    tape = tape_with(strategy)
    x = tape.watch(np.array([1.0, 2.0]))
    h = np.sin(x)
    y = h * x
    by_x, by_h = tape.jacobian(y, [x, h])
    np.testing.assert_allclose(
        np.asarray(by_x), np.diag(np.sin([1.0, 2.0]) + [1, 2] * np.cos([1, 2]))
    )
    np.testing.assert_allclose(np.asarray(by_h), np.diag([1.0, 2.0]))


@each
def test_the_same_value_twice(strategy: Any) -> None:
    tape = tape_with(strategy)
    x = tape.watch(np.array([1.0, 2.0]))
    y = x**2
    (first, second), (third, _) = tape.jacobian([y, y], [x, x])
    for block in (first, second, third):
        np.testing.assert_array_equal(np.asarray(block), np.diag([2.0, 4.0]))
    writable = first.value
    writable[0, 0] = 7.0
    assert np.asarray(second)[0, 0] == 2.0


@each
def test_targets_that_others_are_computed_from(strategy: Any) -> None:
    tape = tape_with(strategy)
    x = tape.watch(np.array([1.0, 2.0]))
    h = x**2
    rows = tape.jacobian({"h": h, "y": np.sum(h) * x}, x)
    np.testing.assert_array_equal(np.asarray(rows["h"]), np.diag([2.0, 4.0]))
    np.testing.assert_allclose(np.asarray(rows["y"]), np.outer([1, 2], [2, 4]) + 5 * np.eye(2))


def test_a_tape_answers_once_unless_persistent() -> None:
    tape = gt.GradientTape()
    x = tape.watch(np.ones(2))
    y = x * 2.0
    tape.jacobian(y, x)
    with pytest.raises(TapeError, match="persistent"):
        tape.jacobian(y, x)


def test_higher_order_by_nested_tapes() -> None:
    outer = gt.GradientTape()
    x = outer.watch(np.array([1.0, 2.0]))
    inner = gt.GradientTape()
    xi = inner.watch(x)
    first = inner.jacobian(xi**3, xi)
    second = outer.jacobian(first, x)
    expected = np.zeros((2, 2, 2))
    expected[0, 0, 0], expected[1, 1, 1] = 6.0, 12.0
    np.testing.assert_allclose(np.asarray(second), expected)
    outer, inner = gt.GradientTape(), gt.GradientTape()
    x = outer.watch(np.ones(2))
    xi = inner.watch(x)
    linear = inner.jacobian(xi * 2.0, xi)
    assert not np.any(np.asarray(outer.jacobian(linear, x)))


def test_on_a_checkpointing_tape() -> None:
    config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Block, checkpoint_every_n=2)
    expected = gt.jacfwd(bow_tie)(W[0])
    for strategy in STRATEGIES:
        tape = gt.GradientTape(checkpoint=config, scheduler=gt.SchedulerConfig(strategy=strategy))
        x = tape.watch(W[0])
        found = tape.jacobian(bow_tie(x), x)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "mixed"])
def test_compiled_and_batched(mode: str) -> None:
    compiled = gt.jit(gt.jacobian(bow_tie, mode=mode))(W[0])
    np.testing.assert_allclose(compiled, gt.jacfwd(bow_tie)(W[0]), rtol=1e-10, atol=1e-14)
    batch = gt.vmap(gt.jacobian(bow_tie, mode=mode))(W[:3])
    np.testing.assert_allclose(batch[2], gt.jacfwd(bow_tie)(W[2]), rtol=1e-10, atol=1e-14)


@each
def test_jacobians_have_the_dtype_of_the_argument(strategy: Any) -> None:
    wide = np.linspace(-1.0, 1.0, 40)

    def function(x: Any) -> Any:
        return {"tall": np.outer(x, wide), "constant": np.ones(2), "short": np.sum(x * wide[:3])}

    mode = gt.SchedulerConfig(strategy=strategy)
    found = gt.jacobian(function, mode=mode)(np.ones(3, np.float32))
    assert {name: block.dtype for name, block in found.items()} == dict.fromkeys(found, np.float32)


def test_schedules_can_be_copied_and_sent() -> None:
    for function in (np.sin, np.sum, bow_tie):
        schedule = gt.jacobian(function).schedule(W[0])
        assert pickle.loads(pickle.dumps(schedule)) == schedule
        assert str(copy.deepcopy(schedule)) == str(schedule)


def test_float32_and_values_that_are_not_finite() -> None:
    found, _ = jacobian(lambda x: np.tanh(x) * 2.0, np.ones(3, np.float32), MIXED)
    assert found.dtype == np.float32

    def function(x: Any) -> Any:
        return np.where(x > 0, np.log(x), 0.0) * np.array([1.0, 2.0])

    for strategy in STRATEGIES:
        with np.errstate(divide="ignore"):
            found, _ = jacobian(function, np.array([0.0, 2.0]), strategy)
        np.testing.assert_array_equal(found, [[0.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "mixed"])
def test_holomorphic(mode: str) -> None:
    z = np.array([1.0 + 2.0j, 0.5 - 1.0j])
    function = lambda z: np.stack([z[0] ** 2 * z[1], np.exp(z[1])])  # noqa: E731
    expected = [[2 * z[0] * z[1], z[0] ** 2], [0, np.exp(z[1])]]
    found = gt.jacobian(function, mode=mode, holomorphic=True)(z)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(NotDifferentiableError, match="not holomorphic"):
        gt.jacobian(lambda z: z * np.conj(z), mode=mode, holomorphic=True)(z)


def test_aux() -> None:
    def function(x: Any) -> Any:
        return x**2, {"sum": np.sum(x)}

    x = np.array([1.0, 2.0])
    for transform in (gt.jacobian, gt.jacfwd, gt.jacrev):
        found, aux = transform(function, has_aux=True)(x)
        np.testing.assert_array_equal(found, np.diag([2.0, 4.0]))
        assert aux == {"sum": 3.0}
        assert type(aux["sum"]) is np.float64
    found, aux = gt.hessian(lambda x: (np.sum(x**3), x[0]), has_aux=True)(x)
    np.testing.assert_array_equal(found, np.diag([6.0, 12.0]))
    assert aux == 1.0
    tensors, aux = gt.jacfwd(function, has_aux=True)(gt.tensor(x))
    assert isinstance(tensors, gt.Tensor)
    assert isinstance(aux["sum"], gt.Tensor)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "mixed"])
def test_modes_of_hessians(mode: str) -> None:
    def function(x: Any) -> Any:
        return np.sum(np.sin(A @ x) ** 2) + x[0] * x[1]

    found = gt.hessian(function, mode=mode)(W[0])
    np.testing.assert_allclose(found, found.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found, gt.jacfwd(gt.grad(function))(W[0]), rtol=1e-11, atol=1e-13)


def test_the_hessian_of_a_function_of_few_combinations_is_cut() -> None:
    down = np.random.default_rng(0).normal(size=(2, 1000))
    x = np.linspace(-1, 1, 1000) / 1000

    def function(x: Any) -> Any:
        for _ in range(8):
            x = 1.1 * x
        return np.sum(np.exp(down @ x))

    hessian = gt.hessian(function)
    scaled = 1.1**8 * down
    expected = scaled.T @ np.diag(np.exp(scaled @ x)) @ scaled
    np.testing.assert_allclose(hessian(x), expected, rtol=1e-9)
    assert hessian.schedule(x).mode == "mixed"
    assert gt.hessian(lambda x: np.sum(np.exp(np.sin(x * 2.0)))).schedule(x).mode == "forward"


# ---- bad input ----------------------------------------------------------------------------------


def test_configurations_that_make_no_sense() -> None:
    with pytest.raises(ArgumentError, match=r"strategy='fast', expected a member of gt\.Sched"):
        gt.SchedulerConfig(strategy="fast")
    with pytest.raises(ArgumentError, match="forward_mode_threshold=-1, expected a positive"):
        gt.SchedulerConfig(forward_mode_threshold=-1)
    with pytest.raises(ArgumentError, match="expected the first to be smaller"):
        gt.SchedulerConfig(forward_mode_threshold=1.0, reverse_mode_threshold=2.0)
    with pytest.raises(ArgumentError, match="Mixed with enable_mixed_mode=False"):
        gt.SchedulerConfig(strategy=MIXED, enable_mixed_mode=False)
    with pytest.raises(ArgumentError, match=r"expected a gt\.SchedulerConfig"):
        gt.GradientTape(scheduler="auto")
    with pytest.raises(ArgumentError, match="jacobian: got mode='fast', expected 'auto'"):
        gt.jacobian(np.sin, mode="fast")
    with pytest.raises(ArgumentError, match="hessian: got mode=an int"):
        gt.hessian(np.sin, mode=3)


def test_targets_and_sources_that_are_not_on_the_tape() -> None:
    tape = gt.GradientTape(persistent=True)
    x = tape.watch(np.ones(2))
    with pytest.raises(TapeError, match="jacobian: the source is not on this tape"):
        tape.jacobian(x * 2.0, np.ones(2))
    with pytest.raises(TapeError, match="jacobian: the target is not on this tape"):
        tape.jacobian(np.ones(2), x)
    z = tape.watch(np.ones(2, complex))
    with pytest.raises(DTypeError, match=r"complex128.*holomorphic=True"):
        tape.jacobian(z * z, z)
    assert tape.schedule is None


def test_targets_and_sources_that_are_swapped_or_missing() -> None:
    tape = gt.GradientTape(persistent=True)
    x = tape.watch(np.ones(3))
    y = np.sin(x)
    for ask in (tape.jacobian, tape.gradient):
        with pytest.raises(TapeError, match=r"computed after the target.*jacobian\(targets, sou"):
            ask(x, y)
        with pytest.raises(TapeError, match=r"got no target, expected a tensor"):
            ask(None, x)
    # Among several, some may be made after others.
    found = tape.jacobian([x, y], [x, y])
    assert not found[0][1].numpy().any()


# ---- complex numbers, infinite ones, sources that depend on each other at a cut ------------------

RANDOM = np.random.default_rng(5)
N = 60
C = RANDOM.normal(size=(2, N)) + 1j * RANDOM.normal(size=(2, N))
D = RANDOM.normal(size=(N, 2)) + 1j * RANDOM.normal(size=(N, 2))
RAMP = np.linspace(0.1, 1.0, N)


def complex_waist(x: Any) -> Any:
    return np.abs(D @ (C @ np.tanh(x) / N)) ** 2


def conjugated_at_waist(x: Any) -> Any:
    z = C @ np.sin(x)
    return np.real(D @ (np.conj(z) * z[::-1]))


def real_and_complex_pass(x: Any) -> Any:
    z, total = C @ np.sin(x), np.sum(x**2)
    return np.imag(D @ (z * total)) + total


def few_frequencies(x: Any) -> Any:
    low = np.fft.rfft(np.sin(x))[:3]
    return np.fft.irfft(np.concatenate([low, np.zeros(N // 2 - 2)]), N)


@pytest.mark.parametrize("compile_it", [lambda f: f, gt.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "function", [complex_waist, conjugated_at_waist, real_and_complex_pass, few_frequencies]
)
def test_complex_values_at_a_cut_are_two_real_ones(function: Any, compile_it: Any) -> None:
    mixed = gt.jacobian(function, mode="mixed")
    assert mixed.schedule(RAMP).parts[0].cuts
    expected = gt.jacrev(function)(RAMP)
    np.testing.assert_allclose(compile_it(mixed)(RAMP), expected, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(gt.jacfwd(function)(RAMP), expected, rtol=1e-11, atol=1e-13)


def test_hessian_cut_at_complex_values() -> None:
    def function(x: Any) -> Any:
        z = C @ x / N
        return np.sum(np.abs(np.exp(z)) ** 2) + np.real(np.sum(z**3))

    mixed = gt.hessian(function, mode="mixed")
    assert mixed.schedule(RAMP).mode == "mixed"
    expected = gt.jacfwd(gt.grad(function))(RAMP)
    np.testing.assert_allclose(mixed(RAMP), expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("unit", [1, 1j])
def test_holomorphic_functions_are_cut(unit: complex) -> None:
    def function(z: Any) -> Any:
        return np.conj(np.conj(D) @ np.conj(np.sin(C @ (unit * z))))

    z = RAMP * (1 + 0.1j)
    mixed = gt.jacobian(function, mode="mixed", holomorphic=True)
    assert mixed.schedule(z).parts[0].cuts
    expected = D @ np.diag(unit * np.cos(C @ (unit * z))) @ C
    np.testing.assert_allclose(mixed(z), expected, rtol=1e-11)


@each
def test_sources_that_depend_on_a_leaf_that_is_one(strategy: Any) -> None:
    encode, decode = np.real(C), np.real(D) / N
    tape = tape_with(strategy)
    x = tape.watch(RAMP)
    h = np.sin(x)
    waist = encode @ h
    y = np.sin(decode @ waist)
    by_h = np.cos(decode @ (encode @ np.sin(RAMP)))[:, None] * decode @ encode
    for source, expected in ((h, by_h), (waist, np.linalg.lstsq(encode.T, by_h.T)[0].T)):
        found = tape.jacobian(y, [x, source])
        np.testing.assert_allclose(found[0], by_h * np.cos(RAMP), rtol=1e-11)
        np.testing.assert_allclose(found[1], expected, rtol=1e-10)


def not_taken(x: Any) -> Any:
    squares, total = np.sum(x * x), np.sum(1 / x)
    return np.sin(np.where(total < 1e4, total, 0.0) * RAMP) + squares


def one_channel_not_taken(x: Any) -> Any:
    pair = np.stack([np.sum(np.log(x)), np.sum(x * x)])
    return np.sin(np.where(np.isfinite(gt.stop_gradient(pair)), pair, 0.0) @ np.stack([RAMP, RAMP]))


@pytest.mark.parametrize("compile_it", [lambda f: f, gt.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("function", [not_taken, one_channel_not_taken])
def test_nothing_passes_a_cut_from_a_branch_that_was_not_taken(
    function: Any, compile_it: Any
) -> None:
    x = np.linspace(0.0, 1.0, N)
    with np.errstate(all="ignore"):
        mixed = gt.jacobian(function, mode="mixed")
        assert mixed.schedule(x).parts[0].cuts
        expected = gt.jacrev(function)(x)
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(compile_it(mixed)(x), expected, rtol=1e-12)


@pytest.mark.parametrize("compile_it", [lambda f: f, gt.jit], ids=["eager", "jit"])
def test_infinite_slopes_pass_a_cut(compile_it: Any) -> None:
    def function(x: Any) -> Any:
        return np.sin(np.stack([np.sum(np.sqrt(x)), np.sum(x)]) @ np.stack([RAMP, -RAMP]))

    x = np.linspace(0.0, 1.0, N)
    mixed = gt.jacobian(function, mode="mixed")
    assert mixed.schedule(x).parts[0].cuts
    with np.errstate(all="ignore"):
        found, expected = compile_it(mixed)(x), gt.jacrev(function)(x)
    assert not np.isfinite(found[:, 0]).any()
    assert not np.isfinite(expected[:, 0]).any()
    np.testing.assert_allclose(found[:, 1:], expected[:, 1:], rtol=1e-12)


def test_mixed_mode_asked_for_where_there_is_no_forward_rule() -> None:
    @gt.custom_vjp
    def seven_times(x: Any) -> Any:
        return np.sin(x)

    @seven_times.defvjp
    def _(ct: Any, out: Any, x: Any) -> Any:
        return (ct * 7,)

    def function(x: Any) -> Any:
        return np.real(D) @ seven_times(np.real(C) @ x)

    expected = gt.jacrev(function)(RAMP)
    np.testing.assert_allclose(gt.jacobian(function, mode="mixed")(RAMP), expected, rtol=1e-12)
    with pytest.raises(NotDifferentiableError):
        gt.jacobian(function, mode="forward")(RAMP)


def test_options_of_other_kinds() -> None:
    config = gt.SchedulerConfig(forward_mode_threshold=np.float32(3), reverse_mode_threshold=1)
    assert config.forward_mode_threshold == 3
    with pytest.raises(ArgumentError, match="enable_mixed_mode='no', expected True or False"):
        gt.SchedulerConfig(enable_mixed_mode="no")
    found = gt.jacobian(np.sin, mode=REVERSE)
    assert found.schedule(np.ones(3)).mode == "reverse"
