"""Results that share their elements with another tensor: as NumPy's views, writes included."""

import copy

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ConversionError, WriteError

X = np.array([1.0, 2.0, 3.0, 4.0])

VIEWS = {
    "reshape": lambda t: t.reshape(2, 2),
    "np.reshape": lambda t: np.reshape(t, (4, 1)),
    "ravel": lambda t: np.ravel(t),
    "T": lambda t: t.reshape(2, 2).T,
    "transpose": lambda t: np.transpose(t.reshape(2, 2)),
    "swapaxes": lambda t: np.expand_dims(t, 0).swapaxes(0, 1),
    "expand_dims": lambda t: np.expand_dims(t, 0),
    "squeeze": lambda t: np.squeeze(t[None]),
    "flip": lambda t: np.flip(t),
    "part of a transpose": lambda t: t.reshape(2, 2).T[1],
}


def written(t, view):
    """Write into a view of `t`, also with `+=`, and give the array it is a view of."""
    view(t)[0] = t[3] * 2.0
    part = view(t)
    part += 1.0
    return t * t


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_writes_go_through_to_the_base(view):
    expected = written(X.copy(), view)
    np.testing.assert_array_equal(np.asarray(written(gt.tensor(X), view)), expected)
    gt.testing.check_grads(lambda x: written(x * 1.0, view), (X,))


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_a_view_reads_what_the_base_holds_now(view):
    t, array = gt.tensor(X), X.copy()
    ours, numpys = view(t), view(array)
    t[2] = 9.0
    array[2] = 9.0
    np.testing.assert_array_equal(np.asarray(ours), numpys)


def test_what_numpy_copies_is_a_copy():
    t = gt.tensor(X)
    flat = t.reshape(2, 2).T.reshape(-1)
    t[0] = 9.0
    assert flat.tolist() == [1, 3, 2, 4]
    flat[1] = 7.0
    assert t.tolist() == [9, 2, 3, 4]


def test_what_repeats_elements_refuses_writes():
    wide = gt.broadcast_to(gt.tensor(X), (2, 4))
    with pytest.raises(WriteError, match=r"copy\(\)"):
        wide[0] = 9.0
    copied = wide.copy()
    copied[0] = 9.0
    assert copied.tolist() == [[9.0] * 4, X.tolist()]


# ---- records do not see what a handle is given later --------------------------------------------


def test_a_pullback_does_not_see_later_values():
    p = gt.tensor(X, requires_grad=True)
    _, pullback = gt.vjp(lambda x: x * p, np.ones(4))
    with gt.no_grad():
        p *= 100.0
    assert np.asarray(pullback(np.ones(4))[0].detach()).tolist() == X.tolist()


def test_a_tape_does_not_see_an_optimizer_step():
    p = gt.tensor(X, requires_grad=True)
    tape = gt.GradientTape()
    x = tape.watch(p)
    y = gt.sum(x * x)
    gt.sum(p).backward()
    gt.optim.SGD(lr=0.5).step([p])
    assert tape.gradient(y, x).tolist() == (2 * X).tolist()
    assert x.tolist() == X.tolist()


def test_a_function_that_writes_to_an_outer_handle_is_not_differentiated_at_the_new_value():
    t = gt.tensor(X)

    def f(x):
        y = gt.sum(x * x)
        t[0] = 100.0
        return y

    assert gt.grad(f)(t).tolist() == (2 * X).tolist()


def test_writing_to_a_result_under_no_grad_is_refused():
    y = gt.tensor(X, requires_grad=True) * 2.0
    with gt.no_grad(), pytest.raises(WriteError, match="detach"):
        y[0] = 5.0


def test_deepcopy_of_an_argument_of_a_transform_is_refused():
    with pytest.raises(ConversionError):
        gt.grad(lambda x: gt.sum(copy.deepcopy(x) ** 2))(X)


def test_a_scalar_leaf_collects_indexed_and_other_cotangents():
    x = gt.tensor(3.0, requires_grad=True)
    (gt.reshape(x, (1,)) * 5 + x + x[None]).backward()
    assert x.grad.item() == 7.0
    x.grad = None
    (x[None] + x + x[None]).backward()
    assert x.grad.item() == 3.0


def test_gradients_recorded_by_create_graph_are_handles_of_their_own():
    x, y = gt.tensor(X, requires_grad=True), gt.tensor(X, requires_grad=True)
    (x + y).backward(create_graph=True)
    x.grad *= 2.0
    assert y.grad.tolist() == [1, 1, 1, 1]


def test_a_recorded_seed_does_not_record_the_backward_pass():
    x, p = gt.tensor(X, requires_grad=True), gt.tensor(X, requires_grad=True)
    (x * 2.0).backward(p * 2.0)
    assert not x.grad.requires_grad
    assert x.grad.tolist() == (4 * X).tolist()


@pytest.mark.parametrize(
    "function", [lambda x: gt.split(x, 2)[1], lambda x: gt.tensor(2.0) * x[1:]]
)
def test_release_passes_every_kind_of_record(function):
    x = gt.tensor(X, requires_grad=True)
    loss = gt.sum(function(x) ** 2)
    loss.backward(release=True)
    expected = gt.grad(lambda v: gt.sum(function(v) ** 2))(X)
    assert x.grad.tolist() == expected.tolist()
    with pytest.raises(gt.GradtapeError, match="released"):
        loss.backward()


def test_subclasses_of_arrays_follow_the_rules_of_arrays():
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]]).view(np.matrix)
    slope = gt.vjp(lambda x: x * matrix, np.ones((2, 2)))[1](np.ones((2, 2)))[0]
    np.testing.assert_array_equal(slope, np.asarray(matrix))
    with pytest.raises(gt.errors.DTypeError, match="masked"):
        gt.grad(lambda x: gt.sum(x * np.ma.masked_array(X, X > 2)))(X)


def test_a_scalar_value_is_not_a_view_of_the_argument():
    a = np.array([3.0])
    value, _ = gt.value_and_grad(lambda x: x.reshape(()))(a)
    assert not np.shares_memory(value, a)
    assert value == 3.0


def test_parts_of_complex_numbers_refuse_writes():
    z = gt.tensor(X) * (1 + 1j)
    with pytest.raises(WriteError):
        z.imag[:] = 0.0
