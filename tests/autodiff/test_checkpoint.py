"""Checkpointing tapes: less is kept, and no bit of a gradient changes."""

from __future__ import annotations

import dataclasses
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import config as settings
from gradtape.core import offload
from gradtape.core.recomputable import Recomputable
from gradtape.core.restore import Restorer
from gradtape.errors import ArgumentError, BudgetError, TapeError
from taped import gradient

S = gt.CheckpointStrategy
CONFIGS = {
    "block": gt.CheckpointConfig(strategy=S.Block, checkpoint_every_n=3),
    "growing blocks": gt.CheckpointConfig(strategy=S.Block),
    "full": gt.CheckpointConfig(strategy=S.Full),
    "selective": gt.CheckpointConfig(strategy=S.Selective, checkpoint_every_n=4),
    "nothing is expensive": gt.CheckpointConfig(strategy=S.Selective, min_compute_cost=1e12),
    "auto": gt.CheckpointConfig(strategy=S.Auto, memory_budget_mb=0.0025),
    "auto, selective": gt.CheckpointConfig(
        strategy=S.Selective, checkpoint_every_n=2, min_compute_cost=30, memory_budget_mb=0.004
    ),
    "none": gt.CheckpointConfig(),
}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


# ---- programs -----------------------------------------------------------------------------------


def chain(x: Any) -> Any:
    for n in range(20):
        x = gt.tanh(x * 1.1 + 0.01 * n)
    return gt.sum(x)


def branches(x: Any) -> Any:
    """Values used far from where they were made, and more than once."""
    old = [x]
    for n in range(12):
        old.append(gt.sin(old[-1]) * old[n // 2] + gt.exp(-old[n // 3]))
    return gt.sum(gt.stack(old)) + gt.sum(old[3] * old[-1])


def products(x: Any) -> Any:
    matrix = gt.outer(x, x) + np.eye(6)
    for _ in range(3):
        matrix = gt.tanh(matrix @ matrix.T) + gt.linalg.inv(matrix + 6 * np.eye(6))
    return gt.trace(matrix) + gt.sum(x[:, None] * matrix)


def several_results(x: Any) -> Any:
    parts = gt.split(gt.exp(x), 3)
    w, v = gt.linalg.eigh(gt.outer(parts[0], parts[0]) + np.diag([1.0, 2.0]))
    order = gt.argsort(x)
    return gt.sum(w * parts[1]) + gt.sum((v * v) @ parts[2]) + gt.sum(gt.sort(x) * x[order])


def writes(x: Any) -> Any:
    """Assignments in place, views, and a buffer that is read while it is written."""
    buffer = x * 0.0
    for i in range(6):
        buffer[i] = x[i] * x[5 - i]
        if i == 3:
            early = gt.sum(buffer**2)
    view = buffer[1:4]
    view[1] = 7.0 * x[0]
    buffer[5:] += x[:1]
    buffer += 1.0
    return gt.sum(buffer**3) + gt.sum(view * view) + early


@gt.custom_vjp
def clipped(x: Any) -> Any:
    return np.clip(x, -0.5, 0.5)


@clipped.defvjp
def _clipped_rule(ct: Any, out: Any, x: Any) -> Any:
    return (ct * (np.abs(out) < 0.5),)


def with_a_rule(x: Any) -> Any:
    for _ in range(3):
        x = clipped(x * 1.2) * x + x
    return gt.sum(x)


@gt.jit
def compiled_step(x: Any, y: Any) -> Any:
    h = gt.tanh(x) * y
    return h @ h, h + x


def compiled(x: Any) -> Any:
    total = 0.0
    for _ in range(5):
        s, x = compiled_step(x, gt.sin(x))
        total = total + s
    return total + gt.sum(x)


def not_recorded(x: Any) -> Any:
    """Regions under no_grad, constants, and a draw of random numbers."""
    generator = gt.random.Generator(3)
    for _ in range(4):
        with gt.no_grad():
            scale = gt.max(gt.abs(x)) + 1.0
        x = gt.nn.dropout(x, 0.3, generator=generator) / scale + x * np.linspace(0.0, 1.0, 6)
    return gt.sum(gt.exp(x))


def loops(x: Any) -> Any:
    def step(h: Any, n: Any) -> Any:
        return gt.sin(h) * x, gt.sum(h)

    end, sums = gt.scan(step, x, np.arange(4.0))
    return gt.sum(end * end) + gt.sum(sums)


def complex_and_float32(x: Any) -> Any:
    z = gt.exp(1j * x) * x
    y = x.astype(gt.float32) * 2.0
    return gt.sum(gt.abs(z @ gt.conj(z))) + gt.sum(gt.exp(y) * y)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    function.__name__: function
    for function in (
        *(chain, branches, products, several_results, writes, with_a_rule, compiled),
        *(not_recorded, loops, complex_and_float32),
    )
}
each_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
SMALL = np.linspace(0.3, 1.4, 6)


# ---- the same gradients -------------------------------------------------------------------------


@each_program
@each_config
def test_no_bit_changes(program: Callable[[Any], Any], config: gt.CheckpointConfig) -> None:
    np.testing.assert_array_equal(
        gradient(program, SMALL, config), gradient(program, SMALL, None), strict=True
    )


@pytest.mark.parametrize("program", [chain, branches, writes], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", CONFIGS)
def test_no_bit_of_large_arrays_changes(program: Callable[[Any], Any], name: str) -> None:
    x = np.linspace(0.1, 1.1, 6 << 13).reshape(6, -1)
    config = CONFIGS[name]
    if name.startswith("auto"):
        config = gt.CheckpointConfig(strategy=S.Auto, memory_budget_mb=24.0)
    np.testing.assert_array_equal(gradient(program, x, config), gradient(program, x, None))


@each_program
@each_config
def test_contexts(program: Callable[[Any], Any], config: gt.CheckpointConfig) -> None:
    found = []
    for checkpoint in (None, config):
        x = gt.tensor(SMALL, requires_grad=True)
        with gt.GradientContext(checkpoint=checkpoint) as context:
            program(x).backward()
            context.tape.clear()
            program(x).backward(release=True)
        found.append(np.asarray(x.grad))
    np.testing.assert_array_equal(found[0], found[1])


@each_program
@each_config
def test_no_bit_of_results_on_disk_changes(
    program: Callable[[Any], Any], config: gt.CheckpointConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    if config.strategy is None:
        pytest.skip("nothing would go to disk")
    monkeypatch.setattr(offload, "LEAST_BYTES", 1)
    on_disk = dataclasses.replace(config, offload=True)
    np.testing.assert_array_equal(
        gradient(program, SMALL, on_disk), gradient(program, SMALL, None), strict=True
    )


@each_program
def test_forward_mode_along_the_records(program: Callable[[Any], Any]) -> None:
    if program is with_a_rule:
        pytest.skip("its function has no forward-mode rule")
    direction = np.cos(SMALL)
    tangents = []
    for config in (None, CONFIGS["full"], CONFIGS["block"]):
        tape = gt.GradientTape(checkpoint=config)
        x = tape.watch(SMALL)
        tangents.append(np.asarray(tape.forward_gradient(x, program(x), direction)))
    assert tangents[0] == tangents[1] == tangents[2]


@each_program
@pytest.mark.parametrize("name", ["block", "full"])
def test_second_order(program: Callable[[Any], Any], name: str) -> None:
    """By nested tapes, both checkpointed, and by create_graph; against transforms."""
    if program is with_a_rule:
        pytest.skip("its rule is written with NumPy functions of the result only")
    expected = gt.grad(lambda x: gt.sum(gt.grad(program)(x) ** 2))(SMALL)
    with gt.GradientTape(checkpoint=CONFIGS[name]) as outer:
        x = outer.watch(SMALL)
        with gt.GradientTape(checkpoint=CONFIGS[name]) as inner:
            y = inner.watch(x)
            out = program(y)
        squares = gt.sum(inner.gradient(out, y) ** 2)
    np.testing.assert_allclose(np.asarray(outer.gradient(squares, x)), expected, rtol=1e-10)
    with gt.GradientContext(checkpoint=CONFIGS[name]):
        x = gt.tensor(SMALL, requires_grad=True)
        gt.compute_gradients(program(x), create_graph=True)
        first, x.grad = x.grad, None
        gt.sum(first**2).backward()
    np.testing.assert_allclose(np.asarray(x.grad), expected, rtol=1e-10)


def test_a_persistent_tape_answers_again() -> None:
    tape = gt.GradientTape(persistent=True, checkpoint=CONFIGS["full"])
    x = tape.watch(SMALL)
    out = chain(x)
    first = np.asarray(tape.gradient(out, x))
    np.testing.assert_array_equal(tape.gradient(out, x), first)
    np.testing.assert_array_equal(first, gradient(chain, SMALL, None))


def test_threads_walk_a_checkpointed_tape_at_once() -> None:
    tape = gt.GradientTape(persistent=True, checkpoint=CONFIGS["full"])
    x = tape.watch(SMALL)
    out = branches(x)
    expected, found = gradient(branches, SMALL, None), []
    threads = [
        threading.Thread(target=lambda: found.append(np.asarray(tape.gradient(out, x))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for each in found:
        np.testing.assert_array_equal(each, expected)


@each_config
def test_what_no_rule_reads_does_not_decide_where_infinity_meets_zero(
    config: gt.CheckpointConfig,
) -> None:
    def program(x: Any) -> Any:
        return gt.sum(gt.sqrt(x * 0.0) * x)

    np.testing.assert_array_equal(gradient(program, SMALL, config), np.zeros(6))
    np.testing.assert_array_equal(gt.jit(gt.grad(gt.checkpoint(program)))(SMALL), np.zeros(6))


def test_an_op_that_is_refused_does_not_count() -> None:
    budget = gt.CheckpointConfig(strategy=S.Auto, memory_budget_mb=0.0005)
    kept = []
    for refused in (False, True):
        tape = gt.GradientTape(checkpoint=budget)
        x = y = tape.watch(SMALL)
        if refused:
            with pytest.raises(BudgetError):
                gt.outer(x, x)
        for _ in range(6):
            y = gt.tanh(y) * y
        tape.gradient(gt.sum(y), x)
        kept.append(tape.checkpoint_report.kept_bytes)
    assert kept[0] == kept[1] > 0


def test_where_infinity_meets_zero() -> None:
    """A walk that has to be done again carefully restores values again."""
    x = np.array([0.0, 1e4, 4.0])

    def program(x: Any) -> Any:
        return gt.sum(gt.exp(-gt.exp(x)))

    with np.errstate(over="ignore"):
        expected = gradient(program, x, None)
        assert np.isfinite(expected).all()
        np.testing.assert_array_equal(gradient(program, x, CONFIGS["full"]), expected)


# ---- what is kept and recomputed ----------------------------------------------------------------


def replays(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of ops that are computed again from now on."""
    names: list[str] = []
    computed = Restorer._computed

    def counted(self: Any, record: Recomputable, *rest: Any) -> Any:
        names.append(record.op.name)
        return computed(self, record, *rest)

    monkeypatch.setattr(Restorer, "_computed", counted)
    return names


def sines(x: Any, n: int) -> Any:
    """A chain in which each record reads its operand, and nothing else."""
    for _ in range(n):
        x = gt.sin(x)
    return x


def test_blocks_are_recomputed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    n, block = 100, 10
    names = replays(monkeypatch)
    config = gt.CheckpointConfig(strategy=S.Block, checkpoint_every_n=block)
    gradient(lambda x: sines(x, n), SMALL, config)
    # The last result of a block is kept for the next one, or read by no rule.
    assert len(names) == n - n // block


def test_full_recomputes_n_log_n(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 256
    names = replays(monkeypatch)
    gradient(lambda x: sines(x, n), SMALL, CONFIGS["full"])
    assert n < len(names) <= n * np.log2(n)


def test_growing_blocks_need_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 20 * 21 // 2
    names = replays(monkeypatch)
    gradient(lambda x: sines(x, n), SMALL, CONFIGS["growing blocks"])
    assert len(names) == n - 20


def test_selective_keeps_expensive_results(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Any) -> Any:
        for _ in range(4):
            x = gt.tanh(x @ x)
        return gt.sum(x)

    x = np.linspace(0.0, 0.1, 400).reshape(20, 20)
    names = replays(monkeypatch)
    config = gt.CheckpointConfig(strategy=S.Selective, min_compute_cost=10_000)
    np.testing.assert_array_equal(gradient(program, x, config), gradient(program, x, None))
    assert set(names) == {"tanh"}


def test_dropped_values_are_gone_and_restored_ones_go() -> None:
    tape = gt.GradientTape(checkpoint=CONFIGS["full"])
    x = h = tape.watch(SMALL)
    made = []
    for _ in range(10):
        h = gt.sin(h)
        made.append(weakref.ref(h.value))
    assert [ref() is None for ref in made] == [True] * 9 + [False]
    out = gt.sum(h)
    del h
    assert made[-1]() is None
    np.testing.assert_array_equal(
        tape.gradient(out, x), gradient(lambda x: gt.sum(sines(x, 10)), SMALL, None)
    )


def test_nothing_is_copied() -> None:
    """Arrays of the user are held as they are."""
    tape = gt.GradientTape(checkpoint=CONFIGS["full"])
    x, factor = tape.watch(SMALL), np.cos(SMALL)
    out = x * factor
    assert out.record.inputs[0] is x.value
    assert out.record.inputs[1] is factor


def test_tapes_of_many_iterations_free_what_they_held() -> None:
    gc.collect()
    for _ in range(3):
        gradient(branches, SMALL, CONFIGS["block"])
    before = sum(isinstance(obj, Recomputable) for obj in gc.get_objects())
    for _ in range(20):
        gradient(branches, SMALL, CONFIGS["block"])
    assert sum(isinstance(obj, Recomputable) for obj in gc.get_objects()) == before


# ---- errors -------------------------------------------------------------------------------------


def test_an_error_in_a_replay_leaves_the_tape_as_it_was() -> None:
    calls = 0

    @gt.custom_vjp
    def moody(x: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise RuntimeError("not today")
        return np.sin(x)

    moody.defvjp(lambda ct, out, x: (ct * np.cos(x),))
    tape = gt.GradientTape(persistent=True, checkpoint=CONFIGS["full"])
    x = tape.watch(SMALL)
    out = gt.sum(gt.exp(moody(x * 2.0)))
    with pytest.raises(RuntimeError, match="not today"):
        tape.gradient(out, x)
    np.testing.assert_allclose(
        tape.gradient(out, x), 2 * np.cos(2 * SMALL) * np.exp(np.sin(2 * SMALL))
    )


def test_a_function_that_changes_its_mind_is_found_out() -> None:
    rng = np.random.default_rng(0)

    @gt.custom_vjp
    def noisy(x: Any) -> Any:
        return x + rng.standard_normal(x.shape)

    noisy.defvjp(lambda ct, out, x: (ct,))
    with pytest.raises(TapeError, match="noisy: gave another result when it was computed again"):
        gradient(lambda x: gt.sum(gt.exp(noisy(x))), SMALL, CONFIGS["full"])


def test_the_host_is_asked_once() -> None:
    asked = []

    def ask(x: Any) -> Any:
        asked.append(1)
        return x * 2.0

    def program(x: Any) -> Any:
        y = gt.host_call(ask, np.zeros(6), x, vjp=lambda ct, out, x: (2 * ct,))
        return gt.sum(gt.exp(y))

    gradient(program, SMALL, CONFIGS["full"])
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"strategy": "Full"}, "got 'Full' for strategy, expected None or one of gt.Checkp"),
        ({"strategy": S.Block, "checkpoint_every_n": 0}, "got 0 for checkpoint_every_n"),
        ({"strategy": S.Block, "checkpoint_every_n": 2.5}, "got 2.5 for checkpoint_every_n"),
        ({"strategy": S.Selective, "min_compute_cost": -1}, "got -1 for min_compute_cost"),
        ({"strategy": S.Selective, "min_compute_cost": "5"}, "got a str for min_compute_cost"),
        ({"strategy": S.Auto, "memory_budget_mb": -5}, "got -5 for memory_budget_mb"),
        ({"strategy": S.Auto, "memory_budget_mb": float("nan")}, "got nan for memory_budget_mb"),
        ({"strategy": S.Auto}, "Auto needs memory_budget_mb"),
        ({"strategy": S.Full, "memory_budget_mb": 5}, "Full takes no memory_budget_mb"),
        ({"strategy": S.Block, "min_compute_cost": 5}, "Block takes no min_compute_cost"),
        ({"checkpoint_every_n": 5}, "strategy None takes no checkpoint_every_n"),
    ],
)
def test_bad_configs(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        gt.CheckpointConfig(**options)


def test_a_tape_takes_a_config() -> None:
    with pytest.raises(ArgumentError, match="got a str for checkpoint, expected"):
        gt.GradientTape(checkpoint="full")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="got a str for checkpoint, expected"):
        gt.GradientContext(checkpoint="full")  # type: ignore[arg-type]


def test_constructors_by_config() -> None:
    tape = gt.GradientTape.with_checkpoint_config(CONFIGS["full"])
    assert not tape.persistent
    tape = gt.GradientTape(persistent=True).with_checkpoint_config(CONFIGS["full"])
    assert tape.persistent
    x = tape.watch(SMALL)
    y = gt.sin(x)
    assert isinstance(y.record, Recomputable)
    with pytest.raises(TapeError, match="watches something already"):
        tape.with_checkpoint_config(CONFIGS["block"])


# ---- checkpointed functions ---------------------------------------------------------------------

POLICIES = {
    "nothing": None,
    "names": gt.keep_ops("matmul", "sin"),
    "other names": gt.drop_ops("tanh", "exp"),
    "size": gt.keep_up_to(40),
    "a config": CONFIGS["full"],
    "no config": CONFIGS["none"],
}
each_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


@each_program
@each_policy
def test_checkpointed_functions(program: Callable[[Any], Any], policy: Any) -> None:
    function = gt.checkpoint(program, policy=policy)
    np.testing.assert_array_equal(gt.grad(function)(SMALL), gt.grad(program)(SMALL))
    np.testing.assert_array_equal(function(SMALL), program(SMALL))


@each_program
def test_checkpointed_functions_inside_of_each_other(program: Callable[[Any], Any]) -> None:
    inner = gt.checkpoint(program)
    outer = gt.checkpoint(lambda x: inner(x * 1.0) * inner(gt.sin(x)))
    np.testing.assert_array_equal(
        gt.grad(outer)(SMALL), gt.grad(lambda x: program(x * 1.0) * program(gt.sin(x)))(SMALL)
    )


def test_a_checkpointed_function_is_called_once_and_closes_over_what_it_likes() -> None:
    calls = []
    w = gt.tensor(SMALL, requires_grad=True)

    @gt.checkpoint
    def layer(x: Any, *, power: int) -> Any:
        calls.append(power)
        return gt.tanh(w * x) ** power if len(calls) < 2 else gt.sin(w * x)

    x = gt.tensor(np.cos(SMALL), requires_grad=True)
    gt.sum(layer(layer(x, power=3), power=2)).backward()
    assert calls == [3, 2]
    found = w.grad, x.grad
    w.grad = x.grad = None
    gt.sum(gt.sin(w * gt.tanh(w * x) ** 3)).backward()
    np.testing.assert_array_equal(found[0], w.grad)
    np.testing.assert_array_equal(found[1], x.grad)


def test_policies_decide_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names = replays(monkeypatch)

    def program(x: Any) -> Any:
        return gt.sum(gt.tanh(gt.exp(gt.sin(x)) * x))

    gt.grad(gt.checkpoint(program, policy=gt.keep_ops("exp")))(SMALL)
    assert "exp" not in names
    assert "multiply" in names


def test_vmap_and_jit_of_checkpointed_functions() -> None:
    rows = np.stack([SMALL, SMALL[::-1]])
    plain, checkpointed = gt.grad(branches), gt.grad(gt.checkpoint(branches))
    np.testing.assert_allclose(gt.vmap(checkpointed)(rows), gt.vmap(plain)(rows), rtol=1e-14)
    np.testing.assert_allclose(gt.jit(checkpointed)(SMALL), plain(SMALL), rtol=1e-13)
    np.testing.assert_allclose(
        gt.grad(gt.jit(gt.checkpoint(branches)))(SMALL), plain(SMALL), rtol=1e-13
    )
    np.testing.assert_allclose(
        gt.hessian(gt.checkpoint(branches))(SMALL), gt.hessian(branches)(SMALL), rtol=1e-12
    )


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequences(segments: int) -> None:
    layers = [gt.sin, gt.exp, gt.tanh, gt.cos, lambda x: x * x]

    def plain(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return gt.sum(x)

    found = gt.grad(lambda x: gt.sum(gt.checkpoint_sequential(layers, segments, x)))(SMALL)
    np.testing.assert_array_equal(found, gt.grad(plain)(SMALL))


def generator(x: Any) -> Any:
    yield gt.sin(x)


def test_bad_functions_policies_and_segments() -> None:
    with pytest.raises(ArgumentError, match="checkpoint: got a Tensor, expected a function"):
        gt.checkpoint(gt.ones(3))
    with pytest.raises(ArgumentError, match="got an int for policy"):
        gt.checkpoint(gt.sin, policy=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="whose body runs after the call has returned"):
        gt.checkpoint(generator)
    with pytest.raises(ArgumentError, match="got 4 segments for 2 functions"):
        gt.checkpoint_sequential([gt.sin, gt.cos], 4, 1.0)
    with pytest.raises(ArgumentError, match="keep_up_to: got -1"):
        gt.keep_up_to(-1)
    with pytest.raises(ArgumentError, match="keep_ops: got 3, expected names of ops"):
        gt.keep_ops(3)  # type: ignore[arg-type]


# ---- compiled functions -------------------------------------------------------------------------


MATRIX = np.linspace(-0.2, 0.2, 64 * 64).reshape(64, 64)


def block(x: Any) -> Any:
    for _ in range(4):
        x = gt.tanh(x * 1.1) @ MATRIX
    return x + gt.sin(x)


def stack_of_blocks(wrap: Callable[..., Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        for _ in range(6):
            x = wrap(block)(x)
        return gt.sum(x * x)

    return function


native = pytest.mark.skipif(
    not settings.uses("products") or not settings.uses("loops"),
    reason="there is no native code to plan",
)
PLAIN = stack_of_blocks(lambda function: function)
CHECKPOINTED = stack_of_blocks(gt.checkpoint)


@native
def test_compiled_gradients_compute_again_what_checkpointed_functions_drop() -> None:
    plain, checkpointed = gt.jit(gt.grad(PLAIN)), gt.jit(gt.grad(CHECKPOINTED))
    np.testing.assert_allclose(checkpointed(MATRIX), plain(MATRIX), rtol=1e-10, atol=1e-13)
    memory = checkpointed.explain(MATRIX).temporary_bytes
    assert memory < 0.6 * plain.explain(MATRIX).temporary_bytes
    keeping = stack_of_blocks(
        lambda function: gt.checkpoint(function, policy=gt.keep_ops("matmul"))
    )
    assert memory < gt.jit(gt.grad(keeping)).explain(MATRIX).temporary_bytes


def kept_bytes(function: Callable[[Any], Any], x: Any) -> int:
    """The bytes of arrays that the record of a compiled function holds."""
    tape = gt.GradientTape()
    out = gt.jit(function)(tape.watch(x))
    return sum(part.nbytes for part in out.record.parent.out)


def test_compiled_functions_keep_only_what_leaves_checkpointed_ones() -> None:
    assert kept_bytes(PLAIN, MATRIX) >= 24 * MATRIX.nbytes
    assert kept_bytes(CHECKPOINTED, MATRIX) <= 7 * MATRIX.nbytes
    np.testing.assert_allclose(
        gt.grad(gt.jit(CHECKPOINTED))(MATRIX), gt.grad(PLAIN)(MATRIX), rtol=1e-10, atol=1e-13
    )


@native
def test_checkpointed_steps_of_loops() -> None:
    def looped(wrap: Callable[..., Any]) -> Callable[[Any], Any]:
        def step(x: Any, _: Any) -> Any:
            return wrap(block)(x), None

        return lambda x: gt.sum(gt.scan(step, x, None, length=6)[0] ** 2)

    plain, checkpointed = (gt.jit(gt.grad(looped(w))) for w in (lambda f: f, gt.checkpoint))
    np.testing.assert_allclose(checkpointed(MATRIX), plain(MATRIX), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(checkpointed(MATRIX), gt.grad(PLAIN)(MATRIX), rtol=1e-10, atol=1e-13)
    memory = checkpointed.explain(MATRIX).temporary_bytes
    assert memory < 0.7 * plain.explain(MATRIX).temporary_bytes


def test_derivatives_of_compiled_checkpointed_functions() -> None:
    x = MATRIX[:4, :4]

    def function(wrap: Callable[..., Any]) -> Callable[[Any], Any]:
        def f(x: Any) -> Any:
            y = wrap(lambda x: gt.exp(gt.sin(x @ x)) * x)(x)
            return gt.sum(wrap(lambda y: gt.tanh(y) @ y)(y))

        return f

    plain, checkpointed = function(lambda f: f), function(gt.checkpoint)
    for transform in (gt.grad, gt.hessian):
        expected = transform(plain)(x)
        for found in (gt.jit(transform(checkpointed))(x), transform(gt.jit(checkpointed))(x)):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)
    batch = np.stack([x, x * 2.0, x.T])
    np.testing.assert_allclose(
        gt.jit(gt.vmap(gt.grad(checkpointed)))(batch), gt.vmap(gt.grad(plain))(batch), rtol=1e-10
    )


def test_a_decorator_with_a_policy() -> None:
    @gt.checkpoint(policy=gt.keep_ops("exp"))
    def layer(x: Any) -> Any:
        return gt.sum(gt.tanh(gt.exp(x)))

    np.testing.assert_array_equal(
        gt.grad(layer)(SMALL), gt.grad(lambda x: gt.sum(gt.tanh(gt.exp(x))))(SMALL)
    )


def test_a_budget_that_an_error_names_suffices_for_what_it_named() -> None:
    def refused(budget: float) -> float | None:
        config = gt.CheckpointConfig(strategy=S.Auto, memory_budget_mb=budget)
        try:
            gradient(chain, np.linspace(0.0, 1.0, 12345), config)
        except BudgetError as error:
            return float(str(error).split("at least ")[1].split(" MB")[0])
        return None

    tried = [0.001]
    while (least := refused(tried[-1])) is not None:
        assert least > tried[-1]
        tried.append(least)
    assert len(tried) <= 4


def test_selective_replays_long_stretches_in_parts() -> None:
    x = np.linspace(0.0, 1.0, 1 << 16)
    config = gt.CheckpointConfig(strategy=S.Selective, min_compute_cost=1e12)
    peaks = []
    for each in (None, config):
        with gt.GradientMemoryProfiler() as profiler:
            gradient(lambda x: gt.sum(sines(x, 100)), x, each)
        peaks.append(profiler.peak_bytes())
    assert peaks[1] < 0.4 * peaks[0]
