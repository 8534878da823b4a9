"""Steps by one native kernel: the bits of NumPy, and nothing written that others see."""

import os
import subprocess
import sys

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.cpu.runtime.object_layout import native_layout
from gradtape.config import uses
from gradtape.core.ownership import is_alone
from gradtape.errors import ArgumentError, ShapeError
from gradtape.kernels import updates
from gradtape.optim import stepping
from optimizer_rules import EVERY

# Less and more than a tile, a whole one, none, and enough for several threads.
SHAPES = [(700,), (512,), (), (3, 5), (0,), (40, 1000)]
DTYPES = ["float32", "float64", "complex64", "float16", "bfloat16"]
ELEMENTWISE = [(name, options) for name, options in EVERY if name != "LAMB"]


# Where native code must not look into objects, or is switched off, every step is prepared anew.
REPEATS = uses("kernels") and native_layout() is not None


def bits(arrays):
    return [(x.dtype, x.shape, x.tobytes()) for x in map(np.asarray, arrays)]


def arrays_of(rng, dtype, shapes):
    dtype = np.dtype(getattr(gt, dtype))
    imaginary = 1j if dtype.kind == "c" else 0.0
    return [
        np.asarray(rng.normal(size=s) + imaginary * rng.normal(size=s)).astype(dtype)
        for s in shapes
    ]


def trained(name, options, dtype, shapes=SHAPES):
    rng = np.random.default_rng(0)
    params = [gt.tensor(x, requires_grad=True) for x in arrays_of(rng, dtype, shapes)]
    optimizer = getattr(gt.optim, name)(params, **options)
    for _ in range(3):
        for param, gradient in zip(params, arrays_of(rng, dtype, shapes), strict=True):
            param.grad = gt.Tensor(gradient)
        optimizer.step()
    state = optimizer.state_dict()
    return bits([param.detach() for param in params]), bits(state.values()), optimizer


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "options"), ELEMENTWISE)
def test_native_steps_have_the_bits_of_numpy(name, options, dtype, monkeypatch):
    before = set(updates._kernels.values())
    got = trained(name, options, dtype)
    assert None not in set(updates._kernels.values()) - before
    monkeypatch.setattr(stepping, "WORTH_COMPILING", 1 << 60)
    assert trained(name, options, dtype)[:2] == got[:2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["Adam", "Lion"])
def test_many_tiles_at_once_have_the_bits_of_numpy(name, dtype, monkeypatch):
    # Beside a small one, which shares their table; some end in the midst of a tile.
    shapes = [(3,), (16 * 8192,), (1000, 71), (8191,)]
    got = trained(name, {}, dtype, shapes)
    monkeypatch.setattr(stepping, "WORTH_COMPILING", 1 << 60)
    assert trained(name, {}, dtype, shapes)[:2] == got[:2]


@pytest.mark.parametrize("place", [0, 8191, 8192, 70_000, 131_071, 131_072])
def test_one_number_that_is_not_finite_is_found_anywhere(place):
    for dtype in (np.float32, np.float16):
        gradient = np.ones(131_073, dtype)
        assert updates.are_finite([gradient])
        gradient[place] = np.inf
        assert not updates.are_finite([np.ones(5, dtype), gradient])


def test_kernels_can_be_switched_off():
    code = """
import sys, numpy as np, gradtape as gt
w = gt.ones(5000, requires_grad=True)
w.grad = gt.ones(5000)
gt.optim.Adam([w], lr=0.5).step()
assert abs(w.tolist()[0] - 0.5) < 1e-6 and "gradtape.kernels.updates" not in sys.modules
"""
    environment = {**os.environ, "GRADTAPE_WITHOUT": "kernels"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def leaf(size=1000, dtype=np.float64):
    w = gt.tensor(np.ones(size, dtype), requires_grad=True)
    w.grad = gt.Tensor(np.ones(size, dtype))
    return w


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("change", ["array", "state", "numpy"])
def test_what_is_remembered_of_columns_is_kept(change, dtype, rng):
    """Arrays in Fortran's order, from the user, from a state, or made by NumPy from such arrays."""
    (array,) = arrays_of(rng, dtype, [(30, 40)])
    gradients = arrays_of(rng, dtype, [(30, 40)] * 6)

    def trained(array, change=None):
        w = gt.tensor(array, requires_grad=True)
        optimizer = gt.optim.Adam([w], lr=0.1, amsgrad=True)
        for place, gradient in enumerate(gradients):
            if place == 3 and change == "state":
                state = {name: np.asfortranarray(x) for name, x in optimizer.state_dict().items()}
                state = {name: x if x.size > 1 else x.reshape(()) for name, x in state.items()}
                optimizer.load_state_dict(state)
            if place == 1 and change == "numpy":
                with np.errstate(under="raise"):  # native code does not raise
                    optimizer.step([gradient])
            else:
                optimizer.step([gradient])
        return bits([w.detach(), *optimizer.state_dict().values()])

    given = array if change == "state" else np.asfortranarray(array)
    assert trained(given, change) == trained(array)


@pytest.mark.skipif(not uses("kernels"), reason="NumPy makes a new array for every result")
def test_arrays_that_only_the_tensor_has_are_written_in_place():
    w = leaf()
    optimizer = gt.optim.SGD([w], lr=0.25, momentum=0.5)
    optimizer.step()
    if not is_alone(w):
        pytest.skip("this Python does not show all references to an array")
    for _ in range(3):
        address = w.value.ctypes.data
        optimizer.step()
        assert w.value.ctypes.data == address
    assert bool(optimizer._repeats) is REPEATS


@pytest.mark.parametrize("first", [0, 1, 3])
def test_what_others_see_is_not_written_into(first):
    w = leaf()
    optimizer = gt.optim.SGD([w], lr=0.25, momentum=0.5)
    for _ in range(first):
        optimizer.step()
    start = w.tolist()[0]
    detached, view, loss = w.detach(), w.detach().numpy()[:3], gt.sum(w * w)
    gradient = w.grad.value
    for _ in range(3):
        optimizer.step()
        assert (detached.tolist()[0], view[0]) == (start, start)
    np.testing.assert_array_equal(gradient, 1.0)
    w.zero_grad()
    loss.backward()
    assert w.grad.tolist()[0] == 2 * start


def test_arrays_of_users_are_not_written_into():
    array = np.ones(1000)
    tensor = gt.Tensor(array)
    tensor.set_requires_grad()
    part = gt.Tensor(np.ones(2000)[:1000])
    part.set_requires_grad()
    optimizer = gt.optim.SGD([tensor, part], lr=1.0)
    whole = part.value.base
    for _ in range(3):
        for param in (tensor, part):
            param.grad = gt.Tensor(np.ones(1000))
        optimizer.step()
    assert (array[0], whole[0]) == (1.0, 1.0)
    assert (tensor.tolist()[0], part.tolist()[0]) == (-2.0, -2.0)


def test_state_that_is_the_gradient_is_not_written_into():
    class Last(gt.optim.Optimizer):
        slots = ("last",)

        @staticmethod
        @gt.optim.elementwise
        def update(value, gradient, slots, factors):
            (lr,) = factors
            return value - lr * slots[0], (gradient,)

    w = leaf()
    optimizer = Last([w], lr=1.0)
    for number in range(4):
        gradient = np.full(1000, number + 1.0)
        optimizer.step([gradient])
        np.testing.assert_array_equal(gradient, number + 1.0)
    assert w.tolist()[0] == 1 - (1 + 2 + 3)


def test_a_rule_that_is_not_marked_sees_whole_arrays():
    class Centred(gt.optim.Optimizer):
        @staticmethod
        def update(value, gradient, slots, factors):
            (lr,) = factors
            return value - lr * (gradient - np.mean(gradient)) / value.size, slots

    for size in (10, 600, 9000):
        w = gt.tensor(np.zeros(size), requires_grad=True)
        gradient = np.arange(float(size))
        Centred([w], lr=1.0).step([gradient])
        np.testing.assert_allclose(w.detach(), -(gradient - gradient.mean()) / size)


def test_a_rule_that_is_marked_by_mistake_is_computed_by_numpy():
    class Centred(gt.optim.Optimizer):
        @staticmethod
        @gt.optim.elementwise
        def update(value, gradient, slots, factors):
            (lr,) = factors
            return value - lr * (gradient - np.mean(gradient)), slots

    w, gradient = gt.tensor(np.zeros(2000), requires_grad=True), np.arange(2000.0)
    Centred([w], lr=1.0).step([gradient])
    np.testing.assert_allclose(w.detach(), -(gradient - gradient.mean()))


# ---- steps that are like the one before, and those that are not ----


def reversed_values(w):
    w.value = np.arange(2000.0)[::-2]


def wide_gradient(w):
    w.record.grad = gt.Tensor(np.ones(1000, np.float32))


def strided_gradient(w):
    w.record.grad = gt.Tensor(np.ones(2000)[::2])


def frozen(w):
    w.set_requires_grad(False)


def without_gradient(w):
    w.grad = None


@pytest.mark.parametrize(
    "change",
    [reversed_values, wide_gradient, strided_gradient, frozen, without_gradient],
)
def test_a_step_that_is_another_than_the_last(change):
    # Each step is that of an optimizer of this parameter alone that repeats nothing.
    results = []
    for repeats in (True, False):
        params = [leaf(), leaf()]
        optimizer = gt.optim.SGD(params, lr=0.25)
        for number in range(5):
            if number == 3:
                change(params[1])
            if not repeats:
                optimizer._repeats = []
            optimizer.step()
        results.append(bits([param.value for param in params]))
    assert results[0] == results[1]


def test_steps_of_given_parameters_are_repeated_for_the_same_ones_only():
    one, other = leaf(), leaf()
    optimizer = gt.optim.SGD(lr=0.25)
    for given in ([one, other], [one, other], (other, one), [one], [one, leaf()], [one, other]):
        optimizer.step(given)
        assert bool(optimizer._repeats) is REPEATS
    assert (one.tolist()[0], other.tolist()[0]) == (1 - 6 * 0.25, 1 - 4 * 0.25)
    with pytest.raises(ArgumentError, match="got no parameters"):
        optimizer.step()


def test_a_parameter_whose_gradient_comes_later_is_stepped_then():
    one, other, never = leaf(), leaf(), leaf()
    other.grad = None
    never.set_requires_grad(False)
    optimizer = gt.optim.SGD([one, other, never], lr=0.25)
    for number in range(5):
        if number == 3:
            other.grad = gt.Tensor(np.ones(1000))
        optimizer.step()
        assert len(optimizer._repeats) == REPEATS
    assert [x.tolist()[0] for x in (one, other, never)] == [1 - 5 * 0.25, 1 - 2 * 0.25, 1.0]


def test_other_groups_and_states_end_the_repetition():
    one, other = leaf(), leaf()
    optimizer = gt.optim.SGD([one], lr=0.25, momentum=0.5)
    state = optimizer.state_dict()
    for _ in range(3):
        optimizer.step()
    optimizer.add_param_group({"params": [other]})
    optimizer.step()
    assert other.tolist()[0] == 0.75
    optimizer = gt.optim.SGD([other], lr=0.25, momentum=0.5)
    for _ in range(3):
        optimizer.step()
    before = other.tolist()[0]
    optimizer.load_state_dict(state | {"0.momentum": np.full(1000, 4.0)})
    optimizer.step()
    assert other.tolist()[0] == before - 0.25 * 3.0


@pytest.mark.parametrize("shape", [(10,), (10, 100)])
def test_a_parameter_that_changes_its_shape_is_noticed(shape):
    params = [leaf(), leaf()]
    optimizer = gt.optim.SGD(params, lr=0.25, momentum=0.5)
    for _ in range(3):
        optimizer.step()
    params[1].value = np.ones(shape)
    params[1].record.grad = gt.Tensor(np.ones(shape))
    before = params[0].tolist()
    with pytest.raises(ShapeError, match=r"at its first step it had shape \(1000,\)"):
        optimizer.step()
    assert params[0].tolist() == before


def test_steps_are_checked_by_numpy_if_it_is_told_to_raise():
    w = gt.tensor(np.full(1000, 1e38, np.float32), requires_grad=True)
    optimizer = gt.optim.SGD([w], lr=1.0)
    for _ in range(3):
        optimizer.step([np.zeros(1000, np.float32)])
    w.grad = gt.Tensor(np.full(1000, -3.3e38, np.float32))
    optimizer.step([np.zeros(1000, np.float32)])
    before = w.tolist()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        optimizer.step()
    assert w.tolist() == before
