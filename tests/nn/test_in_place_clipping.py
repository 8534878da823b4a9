"""`gt.nn.utils`: clipping of gradients in place."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, NonFiniteError

clip_norm, clip_value = gt.nn.utils.clip_grad_norm_, gt.nn.utils.clip_grad_value_


def made(*grads):
    params = [gt.zeros(np.shape(grad), requires_grad=True) for grad in grads]
    for param, grad in zip(params, grads, strict=True):
        param.grad = gt.tensor(grad)
    return params


def grads_of(params):
    return [param.grad.numpy().tolist() for param in params]


def test_the_norm_of_all_gradients_is_limited():
    params = made([3.0, 0.0], [[4.0]])
    idle = gt.ones(2, requires_grad=True)
    # A parameter that is given twice, as tied weights may be, counts once.
    assert clip_norm(iter([*params, idle, params[0]]), 1.0).item() == 5.0
    np.testing.assert_allclose(params[0].grad.numpy(), [0.6, 0.0])
    np.testing.assert_allclose(params[1].grad.numpy(), [[0.8]])
    assert idle.grad is None
    before = grads_of(params)
    clip_norm(params, 2.0)
    assert grads_of(params) == before
    assert clip_norm([idle], 1.0) == 0.0


def test_gradients_that_are_not_finite_are_left_to_the_optimizer():
    params = made([np.inf, 1.0], [2.0])
    assert clip_norm(params, 1.0).item() == np.inf
    with pytest.raises(NonFiniteError):
        clip_norm(params, 1.0, error_if_nonfinite=True)
    with pytest.raises(NonFiniteError):
        gt.optim.SGD(params, lr=0.1).step()
    assert grads_of(params) == [[np.inf, 1.0], [2.0]]


def test_each_element_is_limited():
    params = made([3.0, -0.5], [-2.0])
    clip_value(params, 1.0)
    assert grads_of(params) == [[1.0, -0.5], [-1.0]]


def test_bad_input_changes_nothing():
    (param,) = made([3.0])
    for error, call in [
        (ArgumentError, lambda: clip_norm(param, -1.0)),
        (ArgumentError, lambda: clip_norm(param, 1.0, norm_type=1)),
        (ArgumentError, lambda: clip_value(param, -1.0)),
        (DTypeError, lambda: clip_norm([np.ones(2)], 1.0)),
    ]:
        with pytest.raises(error):
            call()
        assert grads_of([param]) == [[3.0]]


@pytest.mark.parametrize(
    ("clip", "text"),
    [(clip_norm, r"clip_by_global_norm$"), (clip_value, r"gt\.gradients\.clip_by_value$")],
)
def test_gradients_in_a_module_go_elsewhere(clip, text):
    with pytest.raises(DTypeError, match=r"got a Linear, .*net\.parameters\(\); .*" + text):
        clip(gt.nn.Linear(2, 1), 1.0)
