"""What `no_grad` stops and what passes: levels opened inside it record, tangents are left alone."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ConversionError


def silent(function, *args):
    """Call a function under `no_grad`."""
    with gt.no_grad():
        return function(*args)


def test_nothing_opened_outside_records():
    tape = gt.GradientTape()
    x, y = gt.ones(2, requires_grad=True), tape.watch(gt.ones(2))
    with gt.no_grad():
        assert not (x * 2.0).requires_grad
        assert not (x * y).requires_grad
        assert not gt.sum(y @ y).requires_grad
        with gt.enable_grad():
            assert (x * 2.0).requires_grad
            assert (y * 2.0).requires_grad
        assert not (x * 2.0).requires_grad
    assert len(tape) == 1


@pytest.mark.parametrize(
    "transform",
    [
        gt.grad,
        lambda f: lambda x: gt.value_and_grad(f)(x)[1],
        lambda f: lambda x: gt.vjp(f, x)[1](1.0)[0],
        lambda f: lambda x: gt.jvp(f, (x,), (1.0,))[1],
        gt.jacfwd,
        gt.jacrev,
        gt.jacobian,
    ],
    ids=["grad", "value_and_grad", "vjp", "jvp", "jacfwd", "jacrev", "jacobian"],
)
def test_transforms_inside_no_grad_work_and_nest(transform):
    def cube(x):
        return x**3

    with gt.no_grad():
        assert transform(cube)(2.0) == 12.0
        assert transform(transform(cube))(2.0) == 12.0
        assert gt.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0])).tolist() == [
            [4.0, 2.0],
            [2.0, 0.0],
        ]


def test_a_transform_inside_no_grad_is_not_recorded_outside():
    x = gt.tensor(3.0, requires_grad=True)
    with gt.no_grad():
        slope = gt.grad(lambda y: x * y * y)(2.0)
    assert not isinstance(slope, gt.Tensor) or not slope.requires_grad
    assert float(slope) == 12.0


def test_a_tape_opened_inside_works():
    with gt.no_grad():
        tape = gt.GradientTape()
        x = tape.watch(3.0)
        assert tape.gradient(x * x, x).item() == 6.0


def test_no_grad_inside_a_function_cuts_reverse_mode():
    def f(x):
        return x * silent(lambda: x * x)

    assert gt.grad(f)(3.0) == 9.0
    assert gt.grad(gt.grad(f))(3.0) == 0.0
    assert gt.grad(lambda x: silent(lambda: x * x))(3.0) == 0.0


def test_an_inner_derivative_under_no_grad_is_a_constant_outside():
    def f(x):
        return x * silent(lambda: gt.grad(lambda y: x * y * y)(2.0))

    assert gt.grad(f)(3.0) == 12.0


def test_no_grad_leaves_tangents_alone():
    def f(x):
        return x * silent(lambda: x * x)

    assert gt.jvp(f, (3.0,), (1.0,)) == (27.0, 27.0)
    assert gt.jvp(
        lambda x: silent(lambda: np.sum(np.sin(x)[1:])), (np.zeros(3),), (np.ones(3),)
    ) == (
        0.0,
        2.0,
    )


def test_no_grad_in_reverse_over_forward_and_forward_over_reverse():
    def f(x):
        return x * silent(lambda: x * x)

    def tangent(x):
        return gt.jvp(f, (x,), (1.0,))[1]

    # jvp gives x² + x·2x, with x² and 2x computed inside the block, where reverse mode is off.
    assert gt.grad(tangent)(3.0) == 6.0
    # grad gives x², and the tangent of that is left alone.
    assert gt.jvp(gt.grad(f), (3.0,), (1.0,)) == (9.0, 6.0)


def cut_product(x):
    """d/dy [const(x·y)·y] at y = 2, which is 2x, whatever x is."""

    def f(y):
        return silent(lambda: x * y) * y

    return gt.grad(f)(2.0)


def test_no_grad_keeps_the_tangents_of_other_operands():
    assert gt.jvp(cut_product, (3.0,), (1.0,)) == (6.0, 2.0)


def test_no_grad_keeps_the_batch_of_other_operands():
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(gt.vmap(cut_product)(x), 2 * x)


def test_enable_grad_in_a_function_records_again():
    def f(x):
        with gt.no_grad():
            constant = x * x
            with gt.enable_grad():
                return constant * x

    assert gt.grad(f)(3.0) == 9.0


@pytest.mark.parametrize("cut", [gt.stop_gradient, lambda x: x.detach()], ids=["stop", "detach"])
def test_detach_cuts_every_level_and_tangents_too(cut):
    def f(x):
        return x * cut(x * x)

    assert gt.grad(f)(3.0) == 9.0
    assert gt.jvp(f, (3.0,), (1.0,)) == (27.0, 9.0)
    assert gt.grad(gt.grad(f))(3.0) == 0.0
    assert gt.grad(lambda x: x * gt.grad(lambda y: cut(x * y) * y)(2.0))(3.0) == 6.0
    assert gt.jvp(lambda x: gt.grad(lambda y: cut(x) * y)(2.0), (3.0,), (1.0,)) == (3.0, 0.0)


def test_detach_in_a_batch_keeps_the_batch():
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(gt.vmap(gt.grad(lambda x: x * gt.stop_gradient(x)))(x), x)


def test_a_tangent_is_not_lost_by_conversion_under_no_grad():
    with pytest.raises(ConversionError):
        gt.jvp(lambda x: x * silent(lambda: float(x)), (3.0,), (1.0,))


def test_backward_inside_no_grad_works():
    x = gt.tensor([1.0, 2.0], requires_grad=True)
    loss = gt.sum(x * x)
    with gt.no_grad():
        loss.backward()
    np.testing.assert_array_equal(np.asarray(x.grad), [2, 4])


def test_a_derivative_is_not_put_on_a_tape_under_no_grad():
    w = gt.ones(2, requires_grad=True)
    with gt.no_grad():
        slope = gt.grad(lambda x: gt.sum(x * 2.0))(w)
    assert not slope.requires_grad
