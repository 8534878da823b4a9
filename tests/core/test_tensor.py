"""The tensor as a Python object: reading it, iterating, copying, printing."""

import copy
import gc
import math
import operator
import pickle

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ConversionError, GradtapeError, IndexingError, TapeError

X = np.array([0.5, 1.0, 2.0])
Y = np.arange(4.0)


@pytest.fixture
def recorded():
    """A number that is being recorded, and what it was computed from."""
    x = gt.tensor(2.0, requires_grad=True)
    return x * 1.5


# ---- reading ------------------------------------------------------------------------------------


def test_values_can_be_read_while_recording(recorded):
    assert recorded.item() == 3.0
    assert type(recorded.item()) is float
    assert (gt.tensor(X, requires_grad=True) * 2).tolist() == [1.0, 2.0, 4.0]
    assert float(recorded.detach()) == 3.0
    assert f"{recorded:.2f}" == "3.00"
    assert "3." in f"{recorded}"
    assert "3." in repr(recorded)
    assert "3." in str(recorded)
    assert recorded > 2.0


def test_item_needs_one_element():
    assert gt.tensor([[4.0]]).item() == 4.0
    with pytest.raises(GradtapeError, match=r"\(3,\)"):
        gt.tensor(X).item()


def test_untracked_tensors_are_numbers_and_arrays():
    t = gt.tensor(2.25)
    assert (float(t), int(t), complex(t), math.sqrt(t)) == (2.25, 2, 2.25 + 0j, 1.5)
    assert operator.index(gt.tensor(3)) == 3
    assert [10, 20, 30][gt.tensor(1)] == 20
    np.testing.assert_array_equal(np.array([gt.tensor(1.0), gt.tensor(2.0)]), [1, 2])
    buffer = np.zeros(3)
    buffer[:] = gt.tensor(X)
    np.testing.assert_array_equal(buffer, X)


@pytest.mark.parametrize("read", [np.asarray, lambda t: t.numpy(), lambda t: np.asarray(t, float)])
def test_arrays_handed_out_are_read_only(read):
    t = gt.tensor(X)
    array = read(t)
    assert type(array) is np.ndarray
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 9.0
    assert t.tolist() == X.tolist()


def test_a_copy_handed_out_is_writeable():
    t = gt.tensor(X)
    for array in (np.array(t), np.asarray(t, np.float32), np.asarray(t, copy=True)):
        array[0] = 9.0
    assert t.tolist() == X.tolist()
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, np.float32, copy=False)


def test_a_tensor_does_not_share_the_array_it_was_made_of():
    array = X.copy()
    t = gt.tensor(array)
    array[0] = 9.0
    assert t.tolist() == X.tolist()


@pytest.mark.parametrize("end", ["clear", "exit", "tape", "no_grad"])
def test_numbers_can_be_read_when_nothing_records(end):
    if end == "tape":
        with gt.GradientTape() as tape:
            t = tape.watch(2.0) * 1.5
        assert float(t) == 3.0
        return
    with gt.GradientContext():
        t = gt.tensor(2.0, requires_grad=True) * 1.5
        if end == "clear":
            gt.clear_tape()
            assert float(t) == 3.0
        if end == "no_grad":
            with gt.no_grad():
                assert float(t) == 3.0
    assert (float(t), int(t), math.floor(float(t))) == (3.0, 3, 3)


def test_a_tensor_recorded_in_an_enclosing_context_still_counts_as_recorded(recorded):
    with gt.GradientContext(), pytest.raises(ConversionError):
        float(recorded)


# ---- as a sequence ------------------------------------------------------------------------------


def test_iteration_and_unpacking_record():
    x = gt.tensor(X, requires_grad=True)
    a, b, c = x
    gt.compute_gradients(a * b * c + sum(v * v for v in x))
    np.testing.assert_array_equal(np.asarray(x.grad), [2.0 + 1, 1.0 + 2, 0.5 + 4])
    assert len(x) == 3
    assert [row.shape for row in gt.ones((2, 3))] == [(3,), (3,)]
    with pytest.raises(TypeError, match="0-d"):
        len(gt.tensor(1.0))
    with pytest.raises(TypeError):
        list(gt.tensor(1.0))


def test_truth_is_numpys():
    x = gt.tensor(X, requires_grad=True)
    assert bool(x[0] * 2)
    assert not gt.tensor(0.0)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x > 1.0)


def test_hash_and_equality():
    x, y = gt.tensor(X), gt.tensor(X)
    assert {x: 1, y: 2}[x] == 1
    assert hash(x) != hash(y)
    assert (x == y).all()


def test_an_index_out_of_bounds():
    with pytest.raises(IndexingError, match="3"):
        gt.tensor(X)[3]
    with pytest.raises(IndexingError, match="float"):
        gt.tensor(X)[1.0]


# ---- copies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("requires_grad", [False, True])
def test_deepcopy_of_a_leaf_is_a_leaf_of_its_own(requires_grad):
    x = gt.tensor(X, requires_grad=requires_grad)
    twin = copy.deepcopy({"w": x})["w"]
    assert twin.requires_grad == requires_grad
    assert not np.shares_memory(twin.value, x.value)
    if requires_grad:
        gt.compute_gradients(twin * 2.0)
        assert x.grad is None
        assert np.asarray(twin.grad).tolist() == [2, 2, 2]


def test_deepcopy_of_a_result_is_refused(recorded):
    with pytest.raises(ConversionError, match=r"copy\(\)"):
        copy.deepcopy(recorded)


@pytest.mark.parametrize("make", [lambda: gt.tensor(X), lambda: gt.tensor(X, requires_grad=True)])
def test_pickle_is_refused(make):
    with pytest.raises(ConversionError, match=r"np\.save"):
        pickle.dumps(make())


# ---- printing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: gt.tensor([1.0, 2.5]), "tensor([1. , 2.5])"),
        (lambda: gt.tensor([1, 2]), "tensor([1, 2])"),
        (lambda: gt.tensor([1.0], dtype=gt.float32), "tensor([1.], dtype=float32)"),
        (lambda: gt.tensor(1.0, requires_grad=True), "tensor(1., requires_grad=True)"),
        (lambda: gt.tensor(1.0, requires_grad=True) * 2, "tensor(2., recorded by context 0)"),
        (lambda: gt.GradientTape().watch(1.0), "tensor(1., recorded by GradientTape)"),
    ],
)
def test_repr_says_what_it_is(make, text):
    assert repr(make()) == text


def test_printing_inside_transforms():
    seen = []

    def f(x):
        seen.append(repr(x * 2.0))
        seen.append(str(x))
        return np.sum(x)

    gt.grad(f)(X)
    gt.jvp(f, (X,), (X,))
    gt.vmap(f)(np.eye(3))
    gt.vmap(gt.grad(lambda x: gt.jvp(f, (x,), (x,))[1]))(np.eye(3))
    assert len(seen) == 8
    assert all(text.startswith("tensor(") for text in seen)


def test_no_reference_cycles_per_op():
    x = gt.tensor(X, requires_grad=True)

    def run() -> None:
        y = (x * 2.0)[1:]
        gt.sum(np.exp(y) @ y + gt.split(y, 2)[0]).backward()
        gt.grad(lambda v: np.sum(np.tanh(v)[1:]))(X)

    run()  # what is loaded at the first use leaves cycles
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            run()
        assert gc.collect() < 50
    finally:
        gc.enable()


def test_a_view_made_a_leaf_leaves_its_base_alone():
    base = gt.tensor(Y)
    v = base[1:].set_requires_grad(True)
    gt.compute_gradients(v * 2.0)
    assert np.asarray(v.grad).tolist() == [2, 2, 2]
    gt.optim.SGD(lr=0.5).step([v])
    with gt.no_grad():
        v[0] = 9.0
    assert v.is_leaf
    assert v.tolist() == [9.0, Y[2] - 1, Y[3] - 1]
    assert base.tolist() == Y.tolist()
    assert not base.requires_grad


@pytest.mark.parametrize("form", [lambda t: t.reshape(2, 2), lambda t: t.T, gt.ravel])
def test_a_rearranged_array_can_be_made_a_leaf(form):
    w = form(gt.tensor(Y)).set_requires_grad(True)
    gt.compute_gradients(w * 2.0)
    assert w.is_leaf
    np.testing.assert_array_equal(np.asarray(w.grad), np.full(w.shape, 2.0))


def test_the_names_of_pytorch():
    x = gt.tensor([1.0, 2.0])
    x.requires_grad = True
    y = x * x
    y.backward(retain_graph=True)
    y.backward(retain_graph=False)
    assert x.grad.tolist() == [4, 8]
    with pytest.raises(TapeError, match="released"):
        y.backward()
    x.grad = np.zeros(2)
    assert isinstance(x.grad, gt.Tensor)
