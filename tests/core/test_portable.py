"""Compiled functions and transforms are pickled and copied as functions are."""

import copy
import multiprocessing
import os
import pickle

import numpy as np
import pytest

import gradtape as gt
import portable_functions as there

X = np.array([0.5, 1.0, 2.0])

NAMED = {
    "decorated": there.decorated,
    "with statics": there.powered,
    "custom": there.clipped,
    "method": there.Model.step,
    "custom method": there.Model.custom,
    "scope": there.silent,
    "checkpointed": there.checkpointed,
    "checkpointed method": there.Model.checkpointed,
}
MADE = {
    "compiled": there.renamed,
    "grad": there.slope,
    "compiled grad": there.compiled_slope,
    "vmap of hessian": gt.vmap(there.curvature),
    **{f"jacobian {n}": function for n, function in enumerate(there.jacobians)},
    "custom": there.other_clipped,
    "checkpointed": there.checkpointed_loss,
    "checkpointed function of NumPy": there.checkpointed_sine,
    "grad of a checkpointed function": gt.grad(there.checkpointed_loss),
    "batch of grad": gt.vmap(gt.grad(there.decorated)),
}
protocols = pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))


@protocols
@pytest.mark.parametrize("function", NAMED.values(), ids=NAMED.keys())
def test_a_function_with_a_name_is_found_by_it(function, protocol):
    assert pickle.loads(pickle.dumps(function, protocol)) is function
    assert copy.deepcopy({"f": [function]})["f"][0] is function
    assert copy.copy(function) is function


@protocols
@pytest.mark.parametrize("function", MADE.values(), ids=MADE.keys())
def test_a_function_without_a_name_is_made_again(function, protocol):
    if function is MADE["batch of grad"]:
        expected, argument = 2 / np.cosh(X) ** 2, X
    elif function is MADE["vmap of hessian"]:
        expected, argument = -np.sin(X)[:, None, None, None], X[:, None, None]
    else:
        expected, argument = function(X), X
    again = pickle.loads(pickle.dumps(function, protocol))
    assert again is not function
    assert type(again) is type(function)
    assert again.__name__ == function.__name__
    found = again(argument)
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other)
    else:
        np.testing.assert_allclose(found, expected)
    assert copy.deepcopy([function])[0] is function


def test_options_travel():
    compiled = gt.jit(there.loss, static_argnums=1, debug=True)
    again = pickle.loads(pickle.dumps(compiled))
    assert again(X, 2.0) == compiled(X, 2.0)
    assert again.made_by()[1][1:] == compiled.made_by()[1][1:] == ((1,), ("scale",), False, True)
    by_scale = gt.grad(there.loss, 1, has_aux=False)
    assert pickle.loads(pickle.dumps(by_scale))(X, 2.0) == np.sum(np.sin(X))
    mapped = gt.vmap(there.loss, in_axes=(0, None), out_axes=0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mapped))(X, 2.0), 2 * np.sin(X))


def test_custom_rules_travel():
    again = pickle.loads(pickle.dumps(there.other_clipped))
    np.testing.assert_array_equal(gt.grad(lambda x: np.sum(again(x)))(-X), np.ones(3))
    assert gt.grad(pickle.loads(pickle.dumps(there.clipped)))(3.0) == 1.0


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_an_object_that_holds_compiled_functions(copied):
    model = there.Model(2.0)
    model.held = model.step
    model.shared = there.decorated
    np.testing.assert_array_equal(model.attribute(X), 2 * X)
    other = copied(model)
    other.factor = 3.0
    for name in ("attribute", "step", "other", "held", "plain"):
        np.testing.assert_array_equal(getattr(other, name)(X), 3 * X)
        np.testing.assert_array_equal(getattr(model, name)(X), 2 * X)
    assert other.shared is there.decorated
    assert gt.grad(other.custom)(1.0) == 30.0


def test_methods_and_compiled_objects_travel():
    model = there.Model(2.0)
    for function in (model.step, model.other, model.custom, gt.jit(model), gt.jit(model.plain)):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(function))(X), 2 * X)
        np.testing.assert_array_equal(copy.deepcopy(function)(X), 2 * X)


def test_what_has_no_name_says_so():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(gt.jit(lambda x: x))
    nameless = gt.jit(gt.grad(lambda x: x * x))
    assert copy.deepcopy(nameless) is nameless


def test_another_function_of_the_same_name_is_not_taken_for_it():
    first = gt.jit(there.Model.plain)
    assert first is not there.Model.other
    assert pickle.loads(pickle.dumps(first)) is not there.Model.other


def test_transforms_look_like_the_function():
    for transform in (gt.grad, gt.value_and_grad, gt.vmap, gt.jacfwd, gt.hessian):
        made = transform(there.loss)
        assert made.__name__ == "loss"
        assert made.__wrapped__ is there.loss
        made.note = "attributes can be set"
        assert made.note
    assert repr(gt.grad(there.loss)) == "<grad of loss>"

    class Model:
        factor = 2.0

        @gt.grad
        @staticmethod
        def of_static(x):
            return x * x

        def loss(self, x):
            return self.factor * x * x

        slope = gt.grad(loss, 1)

    assert Model().slope(3.0) == 12.0
    assert Model.slope(Model(), 3.0) == 12.0
    assert Model().of_static(3.0) == 6.0


# ---- other processes ----------------------------------------------------------------------------


SENT = [there.decorated, there.compiled_slope, there.slope, there.Model(2.0).step]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(
    "method",
    [
        pytest.param("fork", marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")),
        "spawn",
    ],
)
def test_a_pool_of_processes_calls_them(method):
    """Processes that start with this one's memory, and those that start anew."""
    points = [X, X + 1.0, X * 2.0]
    here = [[function(x) for x in points] for function in SENT]
    with multiprocessing.get_context(method).Pool(1) as pool:
        sent = [pool.map_async(function, points) for function in SENT]
        found = [each.get(timeout=120) for each in sent]
        pool.close()
        pool.join()
    for one, other in zip(found, here, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(np.hstack(a), np.hstack(b))
