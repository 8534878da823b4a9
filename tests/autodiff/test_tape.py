"""`GradientTape`: watching, asking once or often, several tapes at once, and higher orders."""

import gc

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, ShapeError, TapeError

X = np.array([1.0, 2.0, 3.0])


def value(tensor: gt.Tensor) -> np.ndarray:
    assert isinstance(tensor, gt.Tensor)
    return np.asarray(tensor.detach())


# ---- watching -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (3.0, np.float64),
        (np.float32(3), np.float32),
        (np.array(3.0), np.float64),
        (np.array([3.0, 3.0], np.float32), np.float32),
        (gt.tensor([3.0]), np.float64),
        (gt.tensor([3.0], requires_grad=True), np.float64),
    ],
    ids=["float", "float32", "0-d", "array", "tensor", "leaf"],
)
def test_watch_takes_numbers_arrays_and_tensors(given, dtype):
    tape = gt.GradientTape()
    x = tape.watch(given)
    assert isinstance(x, gt.Tensor)
    assert x is not given
    assert x.shape == np.shape(given)
    slope = tape.gradient(x * x, x)
    assert slope.dtype == dtype
    np.testing.assert_array_equal(value(slope), np.full(x.shape, 6.0))


@pytest.mark.parametrize("given", [3, np.arange(3), True, gt.tensor([1, 2])])
def test_watch_refuses_what_has_no_derivatives(given):
    with pytest.raises(DTypeError, match=r"watch.*(int64|bool)"):
        gt.GradientTape().watch(given)


def test_watch_takes_containers():
    tape = gt.GradientTape()
    params = tape.watch({"w": X, "b": [2.0, None]})
    grads = tape.gradient(gt.sum(params["w"] ** 2) * params["b"][0], params)
    np.testing.assert_array_equal(value(grads["w"]), 4.0 * X)
    assert grads["b"] == [pytest.approx(np.sum(X**2)), None]


def test_watch_takes_a_module():
    net = gt.nn.Sequential(gt.nn.Linear(3, 4), gt.nn.BatchNorm1d(4), gt.nn.Linear(4, 1))
    net[0].bias.set_requires_grad(False)
    x = np.arange(15.0, dtype=np.float32).reshape(5, 3) % 4

    def loss(net):
        return gt.mean(net(x) ** 2)

    tape = gt.GradientTape()
    with gt.no_grad():
        watched = tape.watch(net)
        grads = tape.gradient(loss(watched), watched)
        expected = gt.grad(loss)(net)
    assert type(grads) is type(net)
    assert grads[0].bias is net[0].bias  # frozen
    for name in ("0.weight", "1.weight", "1.bias", "2.weight", "2.bias"):
        one, other = (dict(found.named_parameters())[name] for found in (grads, expected))
        np.testing.assert_array_equal(value(one), value(other))
    assert net[1].num_batches_tracked.item() == 2  # buffers are the module's own


def test_watch_names_what_it_refuses_in_a_container():
    with pytest.raises(DTypeError, match=r"watch: the value\['w'\] is a str"):
        gt.GradientTape().watch({"w": "X"})


@pytest.mark.parametrize("wrong", [{"persist": True}, {"scheduler": "forward"}, {"checkpoint": 1}])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_tape_that_is_refused_ends_without_a_message(wrong):
    with pytest.raises((TypeError, ArgumentError)):
        gt.GradientTape(**wrong)
    gc.collect()


def test_watch_refuses_what_is_no_array():
    with pytest.raises(DTypeError, match="str"):
        gt.GradientTape().watch("x")


def test_tapes_and_contexts_leave_each_other_alone():
    gt.clear_tape()
    w = gt.tensor(X, requires_grad=True)
    tape = gt.GradientTape()
    x = tape.watch(X)
    y = gt.sum(x * X)
    assert len(gt.default_context().tape) == 0
    assert len(tape) == 2
    tape.gradient(y, x)
    gt.sum(w * X).backward()
    assert x.grad is None
    assert value(w.grad).tolist() == X.tolist()


def test_a_tape_does_not_touch_grad_of_a_leaf_it_watches():
    w = gt.tensor(X, requires_grad=True)
    tape = gt.GradientTape()
    x = tape.watch(w)
    assert value(tape.gradient(gt.sum(x * x), x)).tolist() == [2, 4, 6]
    assert w.grad is None


def test_tracked_and_untracked_operands_mix():
    tape = gt.GradientTape()
    x = tape.watch(X)
    y = np.sin(x) * X + gt.ones(3) * 2.0 - x / np.float64(4) + 1
    np.testing.assert_allclose(value(tape.gradient(y, x)), np.cos(X) * X - 0.25)


def test_with_a_block_recording_ends_with_it():
    with gt.GradientTape(persistent=True) as tape:
        x = tape.watch(3.0)
        y = x * x
    after = x * 5.0
    assert float(after) == 15.0
    assert not after.requires_grad
    assert tape.gradient(y, x).item() == 6.0
    with pytest.raises(TapeError, match=r"target.*before the `with` block ends"):
        tape.gradient(after, x)
    with pytest.raises(TapeError, match="stopped"):
        tape.watch(1.0)


def test_a_block_left_by_an_exception_ends_recording():
    tape = gt.GradientTape()

    def fail():
        with tape:
            tape.watch(3.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(TapeError, match="stopped"):
        tape.watch(1.0)


# ---- one tape, several blocks -------------------------------------------------------------------


@pytest.mark.parametrize("persistent", [True, False])
def test_another_block_goes_on_recording(persistent):
    with gt.GradientTape(persistent=persistent) as tape:
        x = tape.watch(3.0)
        y = x * x
    constant = x * 100.0
    with tape:
        z = y * x + constant
        w = tape.watch(2.0)
        z = z * w
    assert not (x * 1.0).requires_grad
    assert [slope.item() for slope in tape.gradient(z, [x, w])] == [54.0, 327.0]


def test_a_tape_that_was_stopped_goes_on_in_a_block():
    tape = gt.GradientTape()
    x = tape.watch(3.0)
    tape.stop()
    with tape:
        y = x * x
    assert tape.gradient(y, x).item() == 6.0


def test_a_persistent_tape_goes_on_after_it_was_asked():
    with gt.GradientTape(persistent=True) as tape:
        x = tape.watch(3.0)
        y = x * x
    assert tape.gradient(y, x).item() == 6.0
    with tape:
        z = y * x
    assert tape.gradient(z, x).item() == 27.0
    assert tape.gradient(y, x).item() == 6.0


def test_a_tape_that_was_used_up_begins_anew():
    tape = gt.GradientTape()
    old = None
    for step in range(3):
        with tape:
            x = tape.watch(float(step))
            y = x * x
        assert len(tape) == 1
        assert tape.gradient(y, x).item() == 2.0 * step
        if old is not None:
            with pytest.raises(TapeError, match="used already"):
                tape.gradient(y, old)
        old = x
    with tape:
        y = old * old  # it was watched by what the tape recorded before
        x = tape.watch(1.0)
        z = x * y
    with pytest.raises(TapeError, match="source is not on this tape"):
        tape.gradient(z, old)
    assert tape.gradient(z, x).item() == 4.0


def test_a_block_inside_of_a_block_of_the_same_tape_raises():
    tape = gt.GradientTape()
    with tape:
        x = tape.watch(3.0)
        with pytest.raises(TapeError, match="second `with` block"), tape:
            pass
        y = x * x
    assert tape.gradient(y, x).item() == 6.0


def test_a_block_without_a_watched_tensor_gives_the_tape_no_level():
    tape = gt.GradientTape()
    with tape:
        assert "recording" in repr(tape)
    assert "stopped" in repr(tape)

    def slope(v):
        with tape:
            x = tape.watch(v)  # of a transform that was started after the first block
            y = x * x * x
        return tape.gradient(y, x)

    assert gt.grad(slope)(2.0) == 12.0


# ---- asking -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["gradient", "forward_gradient"])
@pytest.mark.parametrize("second", ["gradient", "forward_gradient"])
def test_a_tape_answers_once_unless_persistent(first, second):
    def ask(tape, how, x, y):
        return tape.gradient(y, x) if how == "gradient" else tape.forward_gradient(x, y)

    tape = gt.GradientTape()
    x = tape.watch(3.0)
    y = x * x
    assert ask(tape, first, x, y).item() == 6.0
    with pytest.raises(TapeError, match="persistent=True"):
        ask(tape, second, x, y)

    tape = gt.GradientTape(persistent=True)
    x = tape.watch(3.0)
    y = x * x
    answers = [ask(tape, how, x, y).item() for how in (first, second)]
    later = x * 7.0  # a persistent tape goes on recording
    assert [*answers, ask(tape, second, x, later).item()] == [6.0, 6.0, 7.0]


def test_a_question_that_fails_does_not_use_the_tape_up():
    tape = gt.GradientTape()
    x = tape.watch(3.0)
    y = x * x
    with pytest.raises(TapeError):
        tape.gradient(y, gt.ones(2))
    assert tape.gradient(y, x).item() == 6.0


def test_many_targets_and_sources_in_one_pass():
    tape = gt.GradientTape(persistent=True)
    x, y, z = tape.watch(2.0), tape.watch(X), tape.watch(5.0)
    one, two = x * x * gt.sum(y), x * y
    grads = tape.gradient([one, two], (x, y, z))
    assert isinstance(grads, tuple)
    # one + sum(two): 4x + 6 by x wherever sum(y) = 6; x² + x by y
    assert grads[0].item() == 2 * 2.0 * 6 + 6
    assert value(grads[1]).tolist() == [6, 6, 6]
    assert grads[2].item() == 0.0
    assert isinstance(tape.gradient((one,), [x]), list)
    assert tape.gradient(one, {"x": x})["x"].item() == 24.0
    assert isinstance(tape.gradient([one, one], x), gt.Tensor)
    assert tape.gradient([one, one], x).item() == 2 * 24.0


def test_output_gradients_replace_the_ones():
    tape = gt.GradientTape(persistent=True)
    x = tape.watch(X)
    y, s = x * x, gt.sum(x)
    seed = np.array([1.0, 0.0, -1.0])
    assert value(tape.gradient(y, x, output_gradients=seed)).tolist() == [2, 0, -6]
    assert value(tape.gradient([y, s], x, output_gradients=[seed, 3.0])).tolist() == [5, 3, -3]
    assert value(tape.gradient(y, x, output_gradients=gt.tensor(seed))).tolist() == [2, 0, -6]
    with pytest.raises(ShapeError, match=r"\(2,\).*\(3,\)"):
        tape.gradient(y, x, output_gradients=np.ones(2))
    with pytest.raises(ShapeError, match="1 output_gradients for 2 targets"):
        tape.gradient([y, s], x, output_gradients=[seed])


def test_unconnected_sources_get_zeros_of_their_form():
    tape = gt.GradientTape()
    x, other = tape.watch(2.0), tape.watch(np.ones((2, 3), np.float32))
    zeros = tape.gradient(x * x, other)
    assert (zeros.shape, zeros.dtype) == ((2, 3), np.float32)
    assert not value(zeros).any()


def test_an_unwatched_source_raises():
    tape = gt.GradientTape()
    plain = gt.tensor(X)
    x = tape.watch(plain)
    for source in (plain, X, gt.ones(3, requires_grad=True)):
        with pytest.raises(TapeError, match="use the tensor watch returned"):
            tape.gradient(gt.sum(x * x), source)


def test_a_target_never_on_the_tape_raises():
    tape = gt.GradientTape()
    x = tape.watch(X)
    leaf = gt.tensor(X, requires_grad=True)
    for target in (gt.ones(3), leaf * 2.0, x.detach() * 2.0, x > 0, X, 1.0):
        with pytest.raises(TapeError, match="target is not on this tape"):
            tape.gradient(target, x)
    other = gt.GradientTape()
    with pytest.raises(TapeError, match="target is not on this tape"):
        tape.gradient(other.watch(X) * 2.0, x)
    with gt.no_grad():
        target = x * 2.0
    with pytest.raises(
        TapeError, match=r"target is not on this tape; .* outside of gt.no_grad\(\)"
    ):
        tape.gradient(target, x)


def test_interior_tensors_are_sources_and_targets_too():
    tape = gt.GradientTape(persistent=True)
    x = tape.watch(X)
    h = np.sin(x)
    y = gt.sum(h * h)
    by_x, by_h, by_y = tape.gradient(y, [x, h, y])
    np.testing.assert_allclose(value(by_h), 2 * np.sin(X))
    np.testing.assert_allclose(value(by_x), 2 * np.sin(X) * np.cos(X))
    assert by_y.item() == 1.0
    assert value(tape.gradient(x, x)).tolist() == [1, 1, 1]
    np.testing.assert_allclose(
        value(tape.forward_gradient(h, y, X)), np.sum(2 * np.sin(X) * X), rtol=1e-14
    )


def test_a_view_and_an_output_of_several_are_sources():
    tape = gt.GradientTape(persistent=True)
    x = tape.watch(np.arange(4.0))
    part, (first, second) = x[1:3], gt.split(x, 2)
    y = gt.sum(part * part) + gt.sum(first * second)
    assert value(tape.gradient(y, part)).tolist() == [2, 4]
    assert value(tape.gradient(y, second)).tolist() == [0, 1]
    assert tape.forward_gradient(second, y, np.ones(2)).item() == 1.0


# ---- forward mode on the same record ------------------------------------------------------------

FUNCTIONS = {
    "elementwise": lambda x: np.exp(np.sin(x) * x),
    "broadcast": lambda x: x[:, None] * x - x,
    "with numbers": lambda x: 2.0 / (1.0 + x**2) - 3 * x,
    "index": lambda x: x[1:] * x[:-1] + x[2],
    "array index": lambda x: x[np.array([2, 0, 2, 1])] * x,
    "matmul": lambda x: gt.reshape(x, (2, 2)) @ gt.reshape(x, (2, 2)).T,
    "several outputs": lambda x: gt.split(x, 2)[0] * gt.split(x, 2)[1],
    "one of several outputs": lambda x: gt.split(x * x, 4)[2],
    "reductions": lambda x: gt.max(x) * gt.mean(x) + gt.sum(x * x) + gt.prod(x),
    "joined": lambda x: gt.concatenate([x, x * x]) * gt.stack([x, x]).reshape(8),
    "shared": lambda x: (lambda y: y * y + gt.sum(y))(np.tanh(x)),
    "zero slope": lambda x: np.floor(x),
    "clip": lambda x: gt.clip(x, 0.6, 1.2) * x,
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_forward_and_reverse_are_adjoint_on_one_record(function, rng):
    tape = gt.GradientTape(persistent=True)
    point, v = rng.uniform(0.5, 1.5, 4), rng.normal(size=4)
    x = tape.watch(point)
    y = function(x)
    u = rng.normal(size=y.shape)
    pushed = tape.forward_gradient(x, y, v)
    pulled = tape.gradient(y, x, output_gradients=u)
    assert (pushed.shape, pushed.dtype) == (y.shape, y.dtype)
    np.testing.assert_allclose(np.sum(u * value(pushed)), value(pulled) @ v, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(value(pushed), gt.jvp(function, (point,), (v,))[1], rtol=1e-12)


def test_forward_gradient_of_a_scalar_source_needs_no_tangent():
    tape = gt.GradientTape(persistent=True)
    t, x = tape.watch(0.5), tape.watch(X)
    y = np.exp(t * X) * x
    np.testing.assert_allclose(value(tape.forward_gradient(t, y)), X * np.exp(0.5 * X) * X)
    with pytest.raises(ShapeError, match="tangent="):
        tape.forward_gradient(x, y)
    with pytest.raises(ShapeError, match=r"\(2,\).*\(3,\)"):
        tape.forward_gradient(x, y, np.ones(2))


def test_forward_gradient_of_an_unconnected_target_is_zero():
    tape = gt.GradientTape()
    t, x = tape.watch(0.5), tape.watch(X)
    zeros = tape.forward_gradient(t, x * x)
    assert zeros.shape == (3,)
    assert not value(zeros).any()


def test_what_a_tape_returns_shares_memory_with_nothing():
    tape = gt.GradientTape(persistent=True)
    x, y = tape.watch(X.copy()), tape.watch(X.copy())
    seed = np.ones(3)
    total = x + y
    arrays = [g.value for g in tape.gradient(total, [x, y, total], output_gradients=seed)]
    arrays += [tape.forward_gradient(x, total, seed).value, seed, x.value, y.value]
    for i, a in enumerate(arrays):
        for b in arrays[i + 1 :]:
            assert not np.shares_memory(a, b)


def test_an_interior_source_that_collects_twice_shares_nothing_with_a_leaf():
    tape = gt.GradientTape()
    x, y = tape.watch(X.copy()), tape.watch(X.copy())
    total = x + y
    grads = tape.gradient(gt.sum(total * 2.0 + total * 3.0), [total, x, y])
    for i, a in enumerate(grads):
        assert a.tolist() == [5, 5, 5]
        for b in grads[i + 1 :]:
            assert not np.shares_memory(a.value, b.value)


def test_swapped_arguments_are_refused():
    tape = gt.GradientTape(persistent=True)
    x = tape.watch(2.0)
    y = x * x
    with pytest.raises(TapeError, match=r"gradient\(targets, sources\)"):
        tape.gradient(x, y)
    with pytest.raises(TapeError, match=r"forward_gradient\(source, target\)"):
        tape.forward_gradient(y, x)


def test_a_part_of_zeros_takes_no_sign_from_its_cotangent() -> None:
    # As in a compiled function, which adds it to the zeros around it.
    slope = gt.grad(lambda x: -0.0 * x[1])(np.ones(3))
    np.testing.assert_array_equal(np.signbit(slope), [False, False, False])
