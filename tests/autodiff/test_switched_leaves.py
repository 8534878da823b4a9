"""A leaf that stops requiring a gradient and requires one again is the leaf it was."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ShapeError


@pytest.fixture
def x():
    return gt.tensor([1.0, 2.0], requires_grad=True)


def grad_of(x):
    return None if x.grad is None else np.asarray(x.grad).tolist()


def test_what_was_recorded_before_reaches_the_leaf_when_it_is_on_again(x):
    loss = gt.sum(x * x)
    x.set_requires_grad(False)
    assert not (x * 2.0).requires_grad
    x.set_requires_grad(True)
    (loss + gt.sum(x * 10.0)).backward()
    assert grad_of(x) == [12.0, 14.0]


def test_nothing_is_added_to_a_leaf_that_is_off(x):
    w = gt.ones(2, requires_grad=True)
    loss = gt.sum(x * w)
    loss.backward()
    x.requires_grad = False
    assert grad_of(x) == [1.0, 1.0]
    loss.backward()
    assert (grad_of(x), grad_of(w)) == ([1.0, 1.0], [2.0, 4.0])
    x.requires_grad = True
    loss.backward()
    assert (grad_of(x), grad_of(w)) == ([2.0, 2.0], [3.0, 6.0])


def test_switching_twice_the_same_way_changes_nothing(x):
    loss = gt.sum(x * x)
    for requires_grad in (True, False, False, True, True):
        assert x.set_requires_grad(requires_grad) is x
        assert x.requires_grad is requires_grad
    loss.backward()
    assert grad_of(x) == [2.0, 4.0]


def test_the_gradient_of_a_leaf_that_is_off_can_be_set_and_zeroed(x):
    gt.sum(x).backward()
    x.set_requires_grad(False)
    x.zero_grad()
    assert grad_of(x) == [0.0, 0.0]
    x.grad = np.array([5.0, 6.0])
    x.set_requires_grad(True)
    assert grad_of(x) == [5.0, 6.0]
    x.set_requires_grad(False)
    x.grad = None
    assert x.grad is None
    with pytest.raises(ShapeError):
        x.grad = gt.ones(3)


def test_a_new_value_in_the_meantime_is_not_what_was_recorded(x):
    loss = gt.sum(x * x)
    x.set_requires_grad(False)
    x[0] = 5.0
    x += 1.0
    x.set_requires_grad(True)
    gt.sum(x * x).backward()
    assert grad_of(x) == [12.0, 6.0]
    loss.backward()
    assert grad_of(x) == [14.0, 10.0]


@pytest.mark.parametrize(
    "write",
    [lambda x, w: x.__setitem__(0, w), lambda x, w: x.__iadd__(w)],
    ids=["item", "augmented"],
)
def test_a_tensor_that_became_a_result_is_no_leaf_any_more(x, write):
    gt.sum(x).backward()
    loss = gt.sum(x * x)
    x.set_requires_grad(False)
    w = gt.tensor(3.0, requires_grad=True)
    write(x, w)
    assert x.requires_grad
    assert not x.is_leaf
    assert x.grad is None
    loss.backward()
    gt.sum(x).backward()
    assert w.grad is not None
    assert x.grad is None


def test_create_graph_goes_on_through_a_switched_leaf(x):
    loss = gt.sum(x * x * x)
    x.set_requires_grad(False).set_requires_grad(True)
    loss.backward(create_graph=True)
    slope, x.grad = x.grad, None
    gt.sum(slope).backward()
    assert grad_of(x) == [6.0, 12.0]


def test_an_optimizer_leaves_what_is_off_alone(x):
    optimizer = gt.optim.SGD([x], lr=1.0)
    gt.sum(x).backward()
    x.set_requires_grad(False)
    optimizer.step()
    assert x.tolist() == [1.0, 2.0]
    x.set_requires_grad(True)
    optimizer.step()
    assert x.tolist() == [0.0, 1.0]


def test_a_part_that_was_made_a_leaf(x):
    part = x.detach()[:1]
    part.set_requires_grad(True)
    loss = gt.sum(part * 3.0)
    part.set_requires_grad(False).set_requires_grad(True)
    loss.backward()
    assert grad_of(part) == [3.0]
