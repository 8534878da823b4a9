"""Gradient contexts and their tapes: who records what, and how long it can be differentiated."""

import threading

import numpy as np
import pytest

import gradtape as gt
from builds import starts_anew
from gradtape.errors import ContextError, ConversionError, TapeError


@pytest.fixture(autouse=True)
def _empty_default_tape():
    gt.clear_default_context_tape()


def leaf(*shape: int) -> gt.Tensor:
    """A leaf of ones."""
    return gt.ones(shape, requires_grad=True)


def grad_of(x: gt.Tensor) -> np.ndarray:
    assert x.grad is not None
    return np.asarray(x.grad)


# ---- the default context ------------------------------------------------------------------------


def test_default_context_is_there_from_the_start():
    assert gt.current_context() is gt.default_context()
    assert gt.default_context().id == 0


def test_default_context_survives_its_with_block():
    x = leaf(2)
    with gt.default_context() as ctx:
        y = x * 3.0
    assert gt.current_context() is ctx is gt.default_context()
    gt.compute_gradients(y)
    np.testing.assert_array_equal(grad_of(x), [3, 3])


@starts_anew
def test_every_thread_has_a_default_context_of_its_own():
    seen = []

    def work():
        x = leaf(2)
        x * 2.0
        seen.append((gt.current_context(), gt.default_context(), len(gt.current_context().tape)))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    contexts = [gt.default_context()] + [default for _, default, _ in seen]
    assert all(active is default for active, default, _ in seen)
    assert [ctx.id for ctx in contexts] == [0, 0, 0, 0]
    assert len({id(ctx) for ctx in contexts}) == 4
    assert [count for _, _, count in seen] == [1, 1, 1]
    assert len(gt.default_context().tape) == 0


# ---- opening, leaving, re-entering --------------------------------------------------------------


def test_contexts_nest_to_any_depth_and_return_to_the_enclosing_one():
    opened = [gt.current_context()]

    def descend(depth: int) -> None:
        with gt.GradientContext() as ctx:
            assert gt.current_context() is ctx
            opened.append(ctx)
            if depth > 1:
                descend(depth - 1)
            assert gt.current_context() is ctx

    descend(20)
    assert gt.current_context() is opened[0]
    assert len({ctx.id for ctx in opened}) == 21


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_deletes_the_context_and_returns_to_the_enclosing_one(error):
    x = leaf(2)
    contexts = []
    results = []

    def fail():
        with gt.GradientContext() as ctx:
            contexts.append(ctx)
            results.append(x * 2.0)
            raise error

    with gt.GradientContext() as outer:
        with pytest.raises(error):
            fail()
        assert gt.current_context() is outer
    with pytest.raises(ContextError, match=f"context {contexts[0].id}"):
        gt.compute_gradients(results[0])


def test_a_deleted_context_cannot_be_entered():
    with gt.GradientContext() as ctx:
        pass
    with pytest.raises(ContextError, match=f"context {ctx.id} was deleted"):
        ctx.__enter__()
    assert gt.current_context() is gt.default_context()


def test_with_ctx_re_enters_and_only_the_outermost_exit_deletes():
    x = leaf(2)
    with gt.GradientContext() as one:
        early = x * 2.0
        with gt.GradientContext() as two:
            with one:
                assert gt.current_context() is one
                late = early * 5.0
            assert gt.current_context() is two
            assert len(two.tape) == 0
        assert gt.current_context() is one
        gt.compute_gradients(late)
    np.testing.assert_array_equal(grad_of(x), [10, 10])
    with pytest.raises(ContextError, match="deleted"):
        one.__enter__()


def test_re_entering_the_default_context_records_there():
    x = leaf(2)
    with gt.GradientContext() as ctx:
        with gt.default_context():
            y = x * 2.0
            assert len(gt.default_context().tape) == 1
        assert len(ctx.tape) == 0
        x * 3.0
        assert (len(gt.default_context().tape), len(ctx.tape)) == (1, 1)
    gt.compute_gradients(y)
    np.testing.assert_array_equal(grad_of(x), [2, 2])


def test_two_models_in_two_contexts_learn_independently():
    w, v = leaf(2), leaf(2)
    with gt.GradientContext() as aux:
        for _ in range(3):
            with gt.default_context():
                gt.sum(w * 2.0).backward()
                gt.clear_tape()
            gt.sum(w.detach() * v).backward()
            assert len(aux.tape) > 0
            gt.clear_tape()
    np.testing.assert_array_equal(grad_of(w), [6, 6])
    np.testing.assert_array_equal(grad_of(v), [3, 3])


# ---- tensors across contexts --------------------------------------------------------------------


def test_a_leaf_made_outside_is_a_leaf_in_every_context():
    x = leaf(2)
    with gt.GradientContext():
        gt.compute_gradients(x * 2.0)
        with gt.GradientContext():
            gt.compute_gradients(x * 3.0)
    gt.compute_gradients(x * 4.0)
    np.testing.assert_array_equal(grad_of(x), [9, 9])


def test_work_of_the_enclosing_context_is_differentiable_after_the_block():
    x = leaf(2)
    y = x * 2.0
    with gt.GradientContext():
        x * 7.0
    gt.compute_gradients(y * 3.0)
    np.testing.assert_array_equal(grad_of(x), [6, 6])


USES = {
    "unary": lambda y, w: gt.exp(y),
    "numpy unary": lambda y, w: np.exp(y),
    "number": lambda y, w: y * 2.0,
    "reflected number": lambda y, w: 2.0 - y,
    "with array": lambda y, w: y + np.ones((2, 2)),
    "array first": lambda y, w: np.ones((2, 2)) + y,
    "with leaf": lambda y, w: y * w,
    "leaf first": lambda y, w: w * y,
    "broadcast": lambda y, w: y * gt.ones(2),
    "sum": lambda y, w: gt.sum(y),
    "reshape": lambda y, w: y.reshape(4),
    "matmul": lambda y, w: w @ y,
    "slice": lambda y, w: y[1:],
    "element": lambda y, w: y[0, 0],
    "array index": lambda y, w: y[np.array([0, 1])],
    "stack": lambda y, w: gt.stack([w, y]),
    "split": lambda y, w: gt.split(y, 2),
    "cast": lambda y, w: y.astype(np.float32),
    "einsum": lambda y, w: gt.einsum("ij,jk->ik", y, w),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_result_recorded_elsewhere_is_refused(use):
    w = leaf(2, 2)
    y = w * 2.0
    with (
        gt.GradientContext() as ctx,
        pytest.raises(ContextError, match=rf"context 0.*context {ctx.id}.*detach\(\)"),
    ):
        use(y, w)
    use(y, w)


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_result_of_an_exited_context_is_refused(use):
    w = leaf(2, 2)
    with gt.GradientContext() as ctx:
        y = w * 2.0
    with pytest.raises(ContextError, match=rf"context {ctx.id}.*detach\(\)"):
        use(y, w)
    with gt.no_grad():
        use(y, w)


def test_a_refused_result_leaves_no_trace():
    x = leaf(2)
    y = x * 2.0
    with gt.GradientContext() as ctx:
        with pytest.raises(ContextError):
            y * x
        assert len(ctx.tape) == 0
    gt.compute_gradients(y)
    np.testing.assert_array_equal(grad_of(x), [2, 2])


def test_a_detached_result_carries_only_its_value():
    x = leaf(2)
    y = x * 2.0
    with gt.GradientContext():
        gt.compute_gradients(y.detach() * x)
    np.testing.assert_array_equal(grad_of(x), [2, 2])


def test_a_loss_of_the_enclosing_context_is_refused_inside():
    x = leaf(2)
    loss = gt.sum(x * 2.0)
    with (
        gt.GradientContext() as ctx,
        pytest.raises(ContextError, match=rf"recorded by context 0.*context {ctx.id}"),
    ):
        gt.compute_gradients(loss)
    assert x.grad is None
    with gt.GradientContext(), gt.default_context():
        gt.compute_gradients(loss)
    np.testing.assert_array_equal(grad_of(x), [2, 2])


def test_a_loss_of_an_exited_context_is_refused_naming_it():
    x = leaf(2)
    with gt.GradientContext() as ctx:
        loss = gt.sum(x * 2.0)
    with pytest.raises(ContextError, match=rf"context {ctx.id} \(exited\)"):
        loss.backward()
    assert x.grad is None


@starts_anew
def test_a_loss_of_another_thread_is_refused():
    x = leaf(2)
    loss = gt.sum(x * 2.0)
    errors = []

    def work():
        try:
            loss.backward()
        except ContextError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(errors) == 1
    assert x.grad is None


# ---- clearing -----------------------------------------------------------------------------------


def test_len_counts_records_since_the_last_clear():
    x = leaf(2)
    tape = gt.default_context().tape
    y = x * 2.0 + 1.0
    assert (len(tape), len(tape)) == (2, 2)
    gt.sum(y)
    assert len(tape) == 3
    with gt.no_grad():
        x * 2.0
    x.detach() * 2.0
    assert len(tape) == 3
    gt.clear_tape()
    assert len(tape) == 0
    x * 2.0
    assert len(tape) == 1


def test_backward_is_not_recorded():
    x = leaf(2)
    loss = gt.sum(gt.exp(x) * x)
    count = len(gt.default_context().tape)
    loss.backward()
    assert len(gt.default_context().tape) == count
    assert not x.grad.requires_grad


@pytest.mark.parametrize("clear", [gt.clear_tape, lambda: gt.current_context().tape.clear()])
def test_clear_tape_clears_the_active_context_only(clear):
    x = leaf(2)
    outer = x * 2.0
    with gt.GradientContext() as ctx:
        inner = x * 3.0
        clear()
        assert (len(ctx.tape), len(gt.default_context().tape)) == (0, 1)
        with pytest.raises(ContextError, match=rf"context {ctx.id} \(cleared\)"):
            inner.backward()
    outer.backward()
    np.testing.assert_array_equal(grad_of(x), [2, 2])


def test_clear_default_context_tape_clears_context_0_only():
    x = leaf(2)
    outer = x * 2.0
    with gt.GradientContext() as ctx:
        inner = x * 3.0
        gt.clear_default_context_tape()
        assert (len(ctx.tape), len(gt.default_context().tape)) == (1, 0)
        inner.backward()
    np.testing.assert_array_equal(grad_of(x), [3, 3])
    with pytest.raises(ContextError, match=r"context 0 \(cleared\)"):
        outer.backward()


def test_a_cleared_result_cannot_be_built_upon():
    x = leaf(2)
    y = x * 2.0
    gt.clear_tape()
    with pytest.raises(ContextError, match=r"cleared.*detach\(\)"):
        y * x
    gt.compute_gradients(y.detach() * x)
    np.testing.assert_array_equal(grad_of(x), [2, 2])


@pytest.mark.parametrize("end", ["clear", "exit"])
def test_numbers_can_be_read_once_recording_has_ended(end):
    x = gt.tensor(3.0, requires_grad=True)
    with gt.GradientContext():
        loss = x * 2.0
        with pytest.raises(ConversionError, match=r"item\(\)"):
            float(loss)
        assert loss.item() == 6.0
        if end == "clear":
            gt.clear_tape()
            assert float(loss) == 6.0
    assert float(loss) == 6.0
    np.testing.assert_array_equal(np.asarray(loss), 6.0)


# ---- targets that cannot be differentiated ------------------------------------------------------


def test_a_target_without_history_is_refused():
    x = leaf(2)
    with gt.no_grad():
        silent = x * 2.0
    for target in (gt.ones(2), x.detach(), silent, np.ones(2)):
        with pytest.raises(TapeError, match="requires a"):
            gt.compute_gradients(target)


def test_a_target_that_only_a_tape_recorded_is_refused():
    tape = gt.GradientTape()
    with pytest.raises(TapeError, match=r"recorded by GradientTape, .*use tape\.gradient"):
        gt.compute_gradients(tape.watch(gt.ones(2)) * 2.0)


@pytest.mark.parametrize("transform", [gt.jit, gt.grad])
def test_backward_inside_of_a_transform_says_what_to_use(transform):
    def step(w):
        loss = gt.sum(w * w)
        loss.backward()
        return loss

    with pytest.raises(TapeError, match=r"recorded by (jit|grad), .*use gt\.value_and_grad"):
        transform(step)(np.ones(2))


def test_a_target_that_a_tape_recorded_too_is_differentiated_in_the_context():
    tape = gt.GradientTape()
    w = leaf(2)
    x = tape.watch(gt.tensor([3.0, 4.0]))
    y = x * w
    gt.compute_gradients(y)
    np.testing.assert_array_equal(grad_of(w), [3, 4])
    assert x.grad is None
