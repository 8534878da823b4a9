"""Gradient contexts as decorators: a new one for every call, kept by generators to their end."""

import threading

import pytest

import gradtape as gt
from gradtape.errors import ContextError


def in_thread(function):
    """Run a function in another thread; return its result, or raise what it raised."""
    results, errors = [], []

    def work():
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def slope_of_square(x):
    leaf = gt.tensor(x, requires_grad=True)
    gt.compute_gradients(leaf * leaf)
    return leaf.grad.item()


def test_a_context_decorates_a_function_that_is_called_again():
    decorated = gt.GradientContext()(slope_of_square)
    assert [decorated(1.0), decorated(2.0), decorated(3.0)] == [2.0, 4.0, 6.0]
    assert gt.current_context() is gt.default_context()


def test_every_call_has_a_context_of_its_own():
    seen = []

    @gt.GradientContext()
    def recursive(depth):
        context = gt.current_context()
        if depth:
            recursive(depth - 1)
        assert gt.current_context() is context
        seen.append(context)

    recursive(2)
    in_thread(lambda: recursive(1))
    assert len({context.id for context in seen}) == 5
    for context in seen:
        with pytest.raises(ContextError, match="was deleted"), context:
            pass


def test_what_a_call_recorded_ends_with_it():
    @gt.GradientContext()
    def recorded():
        return gt.ones(1, requires_grad=True) * 2.0

    with pytest.raises(ContextError, match="exited"):
        recorded().backward()


def test_a_generator_keeps_its_context_to_the_end():
    @gt.GradientContext()
    def steps():
        x = gt.tensor(3.0, requires_grad=True)
        y = x * x
        yield gt.current_context()
        y.backward()
        yield x.grad.item()

    one, other = steps(), steps()
    first, second = next(one), next(other)
    assert first is not second
    assert gt.current_context() is gt.default_context()
    with gt.GradientContext():
        assert next(one) == 6.0
    assert list(other) == [6.0]
    one.close()
    for context in (first, second):
        with pytest.raises(ContextError, match="was deleted"), context:
            pass


def test_an_open_context_is_returned_to():
    with gt.GradientContext() as ctx:

        @ctx
        def inside():
            return gt.current_context()

        @ctx
        def steps():
            yield gt.current_context()
            yield gt.current_context()

        with gt.GradientContext() as other:
            assert inside() is ctx
            for context in steps():
                assert context is ctx
                assert gt.current_context() is other
        assert gt.current_context() is ctx
    with pytest.raises(ContextError, match="was deleted"):
        inside()


def test_the_default_context_as_a_decorator_is_that_of_the_thread_that_calls():
    @gt.default_context()
    def inside():
        return gt.current_context(), gt.default_context()

    with gt.GradientContext():
        assert inside() == (gt.default_context(),) * 2
    found, default = in_thread(inside)
    assert found is default
    assert found is not gt.default_context()
