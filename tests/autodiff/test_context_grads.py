"""Backward passes of gradient contexts: what `.grad` holds, and that nothing is kept too long."""

import copy
import gc
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DTypeError, GradtapeError, ShapeError, TapeError
from gradtape.locks import guard


@pytest.fixture(autouse=True)
def _empty_default_tape():
    gt.clear_default_context_tape()


def leaf(values) -> gt.Tensor:
    return gt.tensor(np.array(values), requires_grad=True)


def grad_of(x: gt.Tensor) -> np.ndarray:
    assert x.grad is not None
    return np.asarray(x.grad)


# ---- leaves -------------------------------------------------------------------------------------


def test_requires_grad_is_set_in_place_and_chains():
    x = gt.ones(2)
    assert not x.requires_grad
    assert x.set_requires_grad(True) is x
    assert x.requires_grad
    assert x.is_leaf
    y = x * 2.0
    assert y.requires_grad
    assert not y.is_leaf
    assert y.grad is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: gt.tensor([1.0, 2.0], requires_grad=True),
        lambda: gt.ones(2, requires_grad=True),
        lambda: gt.zeros(2, requires_grad=True),
        lambda: gt.full(2, 3.0, requires_grad=True),
        lambda: gt.randn(2, requires_grad=True),
    ],
)
def test_constructors_make_leaves(make):
    x = make()
    gt.compute_gradients(x * 3.0)
    np.testing.assert_array_equal(grad_of(x), [3, 3])


def test_a_leaf_can_stop_requiring_a_gradient():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    assert x.set_requires_grad(False) is x
    assert not x.requires_grad
    gt.compute_gradients(x * w)
    assert x.grad is None
    np.testing.assert_array_equal(grad_of(w), [1, 2])


def test_a_result_cannot_stop_requiring_a_gradient():
    y = leaf([1.0]) * 2.0
    with pytest.raises(GradtapeError, match=r"detach\(\)"):
        y.set_requires_grad(False)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_])
def test_only_floating_and_complex_leaves(dtype):
    x = gt.tensor(np.ones(2, dtype))
    with pytest.raises(DTypeError, match=np.dtype(dtype).name):
        x.set_requires_grad(True)
    assert not x.requires_grad
    with pytest.raises(DTypeError, match=np.dtype(dtype).name):
        gt.tensor(np.ones(2, dtype), requires_grad=True)


# ---- what backward adds -------------------------------------------------------------------------


def test_grad_is_none_before_and_for_leaves_that_are_not_reached():
    x, other = leaf([1.0, 2.0]), leaf([1.0])
    assert x.grad is None
    gt.compute_gradients(gt.sum(x * x))
    np.testing.assert_array_equal(grad_of(x), [2, 4])
    assert other.grad is None


def test_gradients_accumulate_over_losses_and_over_walks_of_one_loss():
    x = leaf([1.0, 2.0])
    loss = gt.sum(x * x)
    loss.backward()
    loss.backward()
    np.testing.assert_array_equal(grad_of(x), [4, 8])
    gt.sum(x * 3.0).backward()
    np.testing.assert_array_equal(grad_of(x), [7, 11])


def test_zero_grad_sets_zeros():
    x = leaf(np.array([1.0, 2.0], np.float32))
    gt.compute_gradients(x * 3.0)
    x.zero_grad()
    assert grad_of(x).dtype == np.float32
    np.testing.assert_array_equal(grad_of(x), [0, 0])
    gt.compute_gradients(x * 5.0)
    np.testing.assert_array_equal(grad_of(x), [5, 5])


def test_zeros_are_made_when_they_are_read():
    x = gt.tensor([1.0, 2.0], requires_grad=True)
    x.zero_grad()
    assert x.grad is None
    gt.sum(x * x).backward()
    x.zero_grad()
    x.zero_grad()
    gradient = x.grad
    np.testing.assert_array_equal(gradient, [0.0, 0.0])
    assert x.grad is gradient
    x.zero_grad()
    gt.sum(3.0 * x).backward()
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])
    x.zero_grad()
    x.grad = None
    assert x.grad is None


def test_a_non_scalar_target_is_seeded_with_ones_or_what_is_given():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * x
    y.backward()
    np.testing.assert_array_equal(grad_of(x), [[2, 4], [6, 8]])
    x.grad = None
    y.backward(np.array([[1.0, 0.0], [0.0, -1.0]]))
    np.testing.assert_array_equal(grad_of(x), [[2, 0], [0, -8]])
    x.grad = None
    y.backward(gt.full((2, 2), 0.5))
    np.testing.assert_array_equal(grad_of(x), [[1, 2], [3, 4]])


def test_a_given_gradient_has_to_fit():
    x = leaf([1.0, 2.0])
    y = x * x
    with pytest.raises(ShapeError, match=r"\(3,\).*\(2,\)"):
        y.backward(np.ones(3))
    with pytest.raises(DTypeError, match="complex128"):
        y.backward(np.ones(2) * 1j)
    assert x.grad is None


def test_backward_of_a_leaf_itself():
    x = leaf([1.0, 2.0])
    x.backward()
    np.testing.assert_array_equal(grad_of(x), [1, 1])


def test_grad_can_be_set_to_what_fits():
    x = leaf([1.0, 2.0])
    x.grad = gt.tensor([5.0, 6.0])
    gt.compute_gradients(x * 1.0)
    np.testing.assert_array_equal(grad_of(x), [6, 7])
    with pytest.raises(ShapeError, match=r"\[3\].*\[2\]"):
        x.grad = gt.ones(3)
    with pytest.raises(GradtapeError, match="leaf"):
        (x * 2.0).grad = gt.ones(2)


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: x.astype(np.float64),
        lambda x: x.astype(np.complex64),
        lambda x: x.copy(),
        copy.copy,
        lambda x: x.clone(),
    ],
    ids=["cast", "to complex", "copy method", "copy.copy", "clone"],
)
def test_casts_and_copies_stay_differentiable(convert):
    x = leaf(np.array([1.0, 2.0], np.float32))
    gt.compute_gradients(gt.real(convert(x) * 3.0))
    assert grad_of(x).dtype == np.float32
    np.testing.assert_array_equal(grad_of(x), [3, 3])


# ---- .grad is owned -----------------------------------------------------------------------------

LOSSES = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "sums": lambda x, y: gt.sum(x) + gt.sum(y),
    "transposed": lambda x, y: (x.T + y) * np.arange(9.0).reshape(3, 3),
    "stack": lambda x, y: gt.stack([x, y]) * np.ones((2, 3, 3)),
    "reversed": lambda x, y: x[::-1] + y[:, ::-1],
    "copies": lambda x, y: x.copy() + y.copy(),
    "reshaped": lambda x, y: x.reshape(9) + y.reshape(9),
    "broadcast": lambda x, y: gt.broadcast_to(x, (2, 3, 3)) + y,
    "casts": lambda x, y: x.astype(np.float64) + y.astype(np.float64),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_grad_is_writeable_contiguous_and_shared_with_nothing(loss):
    x, y = leaf(np.ones((3, 3))), leaf(np.full((3, 3), 2.0))
    target = loss(x, y)
    seed = np.ones(target.shape)
    target.backward(seed)
    grads = [x.grad.value, y.grad.value]
    for array in grads:
        assert array.flags.writeable
        assert array.flags.c_contiguous
    for i, a in enumerate(grads):
        for b in [seed, x.value, y.value, *grads[i + 1 :]]:
            assert not np.shares_memory(a, b)


def test_grad_handed_out_as_an_array_is_read_only():
    x = leaf([1.0, 2.0])
    gt.compute_gradients(x * 2.0)
    assert not np.asarray(x.grad).flags.writeable


def test_threads_accumulate_into_a_shared_leaf_without_loss():
    x = leaf(np.zeros(4))
    start = threading.Barrier(8)

    def work():
        start.wait()
        for _ in range(200):
            gt.sum(x * 1.0).backward()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(grad_of(x), np.full(4, 1600.0))


# ---- optimizers and the tape --------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", [gt.optim.SGD, gt.optim.Adam])
def test_zero_grad_with_parameters_also_clears_context_0(optimizer):
    w = leaf([1.0, 2.0])
    gt.sum(w * w).backward()
    with gt.GradientContext() as ctx:
        inner = gt.sum(w * 3.0)
        optimizer(lr=0.1).zero_grad([w])
        assert (len(gt.default_context().tape), len(ctx.tape)) == (0, 2)
        np.testing.assert_array_equal(grad_of(w), [0, 0])
        inner.backward()
    np.testing.assert_array_equal(grad_of(w), [3, 3])


@pytest.mark.parametrize("optimizer", [gt.optim.SGD, gt.optim.Adam])
def test_zero_grad_without_arguments_only_zeroes(optimizer):
    w = leaf([1.0, 2.0])
    gt.sum(w).backward()
    loss = gt.sum(w * w)
    opt = optimizer([w], lr=0.1)
    opt.zero_grad()
    loss.backward()
    np.testing.assert_array_equal(grad_of(w), [2, 4])
    opt.step()
    assert np.all(np.asarray(w.detach()) < [1, 2])


def test_a_step_does_not_change_what_was_recorded_before():
    w = leaf([1.0, 2.0])
    early = gt.sum(w * w * w)
    gt.sum(w).backward()
    gt.optim.SGD(lr=1.0).step([w])
    np.testing.assert_array_equal(np.asarray(w.detach()), [0, 1])
    w.zero_grad()
    early.backward()
    np.testing.assert_array_equal(grad_of(w), [3, 12])


# ---- create_graph, release ----------------------------------------------------------------------


def test_create_graph_makes_gradients_differentiable():
    x = leaf([1.0, 2.0])
    gt.sum(x**3).backward(create_graph=True)
    first = x.grad
    np.testing.assert_allclose(np.asarray(first.detach()), [3, 12])
    x.grad = None
    gt.sum(first * first).backward()  # d (3x²)² = 36 x³
    np.testing.assert_allclose(grad_of(x), [36, 288])


def test_create_graph_to_the_third_order():
    x = leaf(2.0)
    y = gt.sin(x) * x**3
    for _ in range(3):
        x.grad = None
        y.backward(create_graph=True)
        y = x.grad
    s, c = np.sin(2.0), np.cos(2.0)
    # (x³ sin x)''' = 6 sin x + 18 x cos x − 9 x² sin x − x³ cos x
    assert y.item() == pytest.approx(6 * s + 36 * c - 36 * s - 8 * c, rel=1e-13)


def test_a_recorded_gradient_does_not_stop_later_accumulation():
    x = leaf([1.0, 2.0])
    with gt.GradientContext():
        gt.sum(x * x).backward(create_graph=True)
    gt.sum(x * 3.0).backward()
    np.testing.assert_array_equal(grad_of(x), [5, 7])


def test_release_gives_the_same_gradient_and_can_be_walked_once():
    x = leaf([1.0, 2.0])
    loss = gt.sum(gt.exp(x) * x)
    loss.backward(release=True)
    np.testing.assert_allclose(grad_of(x), np.exp([1, 2]) * [2, 3])
    with pytest.raises(TapeError):
        loss.backward()


def test_a_loss_over_released_records_is_refused():
    x = leaf([1.0, 2.0])
    shared = gt.exp(x)
    one, two = gt.sum(shared), gt.sum(shared * shared)
    one.backward(release=True)
    with pytest.raises(TapeError):
        two.backward()


def test_release_frees_what_the_records_hold():
    x = leaf(np.ones(3))
    y = x * 2.0
    held = weakref.ref(y.value)
    loss = gt.sum(y * y)
    del y
    assert held() is not None
    loss.backward(release=True)
    assert held() is None


# ---- nothing is kept too long -------------------------------------------------------------------


def test_a_history_dies_with_its_result_without_the_cyclic_collector():
    x = leaf(np.ones(3))
    gc.collect()
    gc.disable()
    try:
        y = x * 2.0
        held = weakref.ref(y.value)
        loss = gt.sum(y * y[::-1] + gt.split(y, 3)[0])
        loss.backward()
        del y
        assert held() is not None
        del loss
        assert held() is None
    finally:
        gc.enable()


def test_a_record_keeps_only_what_its_rule_reads():
    x = leaf(np.ones(3))
    argument = x * 2.0
    held = weakref.ref(argument.value)
    result = gt.exp(argument)  # its rule reads the result, not the argument
    del argument
    assert held() is None
    gt.compute_gradients(result)
    np.testing.assert_allclose(grad_of(x), 2 * np.exp([2.0, 2.0, 2.0]))


def forget_to_clear(context, measure, steps):
    """What is measured when nothing has to grow any more, and after all steps."""
    measured = []
    with context():
        w = leaf(np.ones(8))
        for i in range(1, steps + 1):
            gt.sum(gt.exp(w * 0.5) + w[2:4][0]).backward()
            w * 3.0  # recorded, never differentiated
            if i in (2_000, steps):
                measured.append(measure())
    return measured


@pytest.mark.parametrize("context", [gt.GradientContext, gt.default_context])
def test_forgetting_to_clear_does_not_leak(context):
    before, after = forget_to_clear(context, sys.getallocatedblocks, 3_000)
    assert after < before + 500  # a leak has a block and more for each of a thousand steps


@pytest.mark.slow
@pytest.mark.parametrize(
    ("context", "steps"), [(gt.GradientContext, 10_000), (gt.default_context, 4_000)]
)
def test_forgetting_to_clear_leaks_no_bytes(context, steps):
    tracemalloc.start()
    try:
        before, after = forget_to_clear(context, lambda: tracemalloc.get_traced_memory()[0], steps)
    finally:
        tracemalloc.stop()
    assert after < before + 10_000


def test_clearing_cuts_the_history_of_losses_still_held():
    w = leaf(np.ones(1000))
    losses = []
    tracemalloc.start()
    try:
        for _ in range(500):
            loss = gt.sum(gt.exp(w * 2.0))
            loss.backward()
            losses.append(loss)
            gt.clear_tape()
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert size < 500 * 2_000  # each history holds 8,000 bytes and more
    assert float(losses[0]) == pytest.approx(1000 * np.exp(2.0))


def test_a_gradient_without_history_is_taken_as_it_is():
    class Log:
        kind = "observing"

        def __init__(self) -> None:
            self.names: list[str] = []

        def run(self, op, args, params, proceed):
            self.names.append(op.name)
            return proceed(op, args, params)

    x = gt.ones(3, requires_grad=True)
    y = x * 2.0
    with gt.using_mode(log := Log()):
        y.backward(gt.ones(3))
    # Forgetting a history that is not there would take as long as the backward pass.
    assert "stop_gradient" not in log.names
    np.testing.assert_array_equal(x.grad, [2.0, 2.0, 2.0])


def test_nothing_is_called_between_a_look_at_a_gradient_and_its_change():
    # A call is where a signal handler may come in, and add to the same gradient.
    x = gt.ones(3, requires_grad=True)
    called = []

    def note(frame, event, _arg):
        if event == "call" and guard._is_owned():
            called.append(frame.f_code.co_name)

    for _ in range(2):
        loss = gt.sum(x * 2.0)
        sys.setprofile(note)
        try:
            loss.backward()
            x.zero_grad()
            assert x.grad is not None  # zeros are made when they are read
        finally:
            sys.setprofile(None)
    assert called == []
