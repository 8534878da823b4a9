"""Scopes as decorators: in force while the body runs, at every call and at every resumption."""

import asyncio
import contextlib
import functools
import inspect
import threading
import types

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.state import current
from gradtape.errors import ArgumentError, TapeError


def records() -> bool:
    """Whether an op on a leaf is recorded now."""
    return (gt.ones(1, requires_grad=True) * 2.0).requires_grad


def active_scope():
    """The scope of the innermost block."""
    return getattr(current().entry, "scope", None)


class Count:
    """A mode that counts the ops it sees."""

    kind = "observing"

    calls = 0

    def run(self, op, args, params, proceed):
        self.calls += 1
        return proceed(op, args, params)


SCOPES = {
    "no_grad": gt.no_grad,
    "enable_grad": gt.enable_grad,
    "context": gt.GradientContext,
    "default context": gt.default_context,
    "mode": lambda: gt.using_mode(Count()),
    "detect_writes": gt.detect_writes,
}
scopes = pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES.keys())


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


def silent_numbers():
    """A generator whose body runs under `no_grad`, and says what it saw."""

    @gt.no_grad()
    def numbers():
        seen = []
        for n in range(3):
            seen.append(records())
            try:
                sent = yield n
            except ZeroDivisionError:
                sent = "caught"
            seen.append(sent)
        return seen

    return numbers()


# ---- generators ---------------------------------------------------------------------------------


def test_a_generator_runs_in_the_scope_and_its_caller_does_not():
    generator = silent_numbers()
    assert [next(generator), generator.send("a")] == [0, 1]
    assert records()
    assert generator.throw(ZeroDivisionError()) == 2
    assert records()
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == [False, "a", False, "caught", False, None]
    assert records()


@scopes
@pytest.mark.parametrize("outer", [contextlib.nullcontext, gt.no_grad, gt.GradientContext])
def test_between_two_steps_the_state_is_the_callers(scope, outer):
    inside = []

    @scope()
    def numbers():
        for n in range(3):
            inside.append(active_scope())
            yield n

    with outer():
        before, around = current(), active_scope()
        for _ in numbers():
            assert current() is before
        assert current() is before
    assert len(set(map(id, inside))) == 1
    assert inside[0] is not around


@scopes
def test_a_generator_that_is_closed_forgotten_or_fails_leaves_nothing(scope):
    closed = []

    @scope()
    def numbers(fail):
        try:
            yield records()
            if fail:
                raise ZeroDivisionError
            yield
        finally:
            closed.append(records())

    before = current()
    generator = numbers(False)
    seen = next(generator)
    generator.close()
    generator = numbers(False)
    next(generator)
    del generator
    generator = numbers(True)
    next(generator)
    with pytest.raises(ZeroDivisionError):
        next(generator)
    assert closed == [seen] * 3
    assert current() is before
    assert list(numbers(False)) == [seen, None]


def test_a_generator_that_ignores_close_is_told_so():
    @gt.no_grad()
    def stubborn():
        with contextlib.suppress(GeneratorExit):
            yield
        yield

    generator = stubborn()
    next(generator)
    with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
        generator.close()
    assert records()


def test_blocks_of_the_body_stay_with_the_body():
    @gt.no_grad()
    def numbers():
        with gt.enable_grad():
            yield records()
            yield records()
        yield records()

    generator = numbers()
    with gt.no_grad():
        assert next(generator)
        assert not records()
    assert next(generator)
    with gt.GradientContext() as ctx:
        assert not next(generator)
        assert gt.current_context() is ctx
    assert list(generator) == []
    assert records()


def test_what_is_opened_inside_goes_on_and_what_is_opened_between_is_stopped():
    @gt.no_grad()
    def body():
        tape = gt.GradientTape(persistent=True)
        x = tape.watch(3.0)
        for _ in range(20):
            # A level of the body, and one of the caller, at every step.
            sent = yield gt.grad(lambda v: v * v)(2.0)
            assert not (sent * 2.0).requires_grad
        yield tape.gradient(x * x, x).item()

    generator = body()
    assert next(generator) == 4.0

    def step(x):
        return generator.send(x) * x

    for _ in range(19):
        assert gt.grad(step)(1.0) == 4.0
    assert generator.send(gt.ones(1, requires_grad=True)) == 6.0


def test_a_generator_may_go_on_in_another_thread():
    generator = silent_numbers()
    assert [next(generator), *in_thread(lambda: (next(generator), records()))] == [0, 1, True]
    in_thread(generator.close)
    assert records()


def test_generators_run_turn_about():
    pairs = zip(silent_numbers(), silent_numbers(), strict=True)
    assert [*pairs] == [(0, 0), (1, 1), (2, 2)]


# ---- async functions ----------------------------------------------------------------------------


@types.coroutine
def pause(value=None):
    return (yield value)


@scopes
def test_a_coroutine_runs_in_the_scope_and_who_drives_it_does_not(scope):
    inside = []

    @scope()
    async def work(x):
        inside.append(active_scope())
        sent = await pause("paused")
        inside.append(active_scope())
        return x, sent

    before, around = current(), active_scope()
    coroutine = work(1)
    assert coroutine.send(None) == "paused"
    assert current() is before
    with pytest.raises(StopIteration) as stop:
        coroutine.send("sent")
    assert stop.value.value == (1, "sent")
    assert current() is before
    assert inside[0] is inside[1]
    assert inside[0] is not around


def test_tasks_of_a_decorated_function_run_beside_each_other():
    contexts = []

    @gt.GradientContext()
    async def slope(factor, turns):
        context = gt.current_context()
        contexts.append(context)
        x = gt.tensor(1.0, requires_grad=True)
        for _ in range(turns):
            y = x * factor
            await asyncio.sleep(0)
            assert gt.current_context() is context
            gt.compute_gradients(y)
        return x.grad.item()

    async def main():
        return await asyncio.gather(*(slope(float(k), 2 + k) for k in range(4)))

    assert asyncio.run(main()) == [k * (2.0 + k) for k in range(4)]
    assert len({context.id for context in contexts}) == 4


def test_an_async_generator_runs_in_the_scope_and_its_caller_does_not():
    log = []

    @gt.no_grad()
    async def numbers():
        try:
            for n in range(5):
                log.append(records())
                await asyncio.sleep(0)
                try:
                    log.append((yield n))
                except ZeroDivisionError:
                    log.append("caught")
        finally:
            await asyncio.sleep(0)
            log.append(records())

    async def main():
        generator = numbers()
        assert await anext(generator) == 0
        assert records()
        assert await generator.asend("sent") == 1
        assert records()
        assert await generator.athrow(ZeroDivisionError()) == 2
        assert records()
        await generator.aclose()
        assert records()
        return [n async for n in numbers()]

    assert asyncio.run(main()) == [0, 1, 2, 3, 4]
    assert log[:7] == [False, "sent", False, "caught", False, False, False]
    assert True not in log


# ---- functions of every kind --------------------------------------------------------------------


@scopes
def test_a_decorated_function_is_of_the_same_kind(scope):
    def function(x): ...

    def generator(x):
        yield

    async def coroutine(x): ...

    async def async_generator(x):
        yield

    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    for original in (function, generator, coroutine, async_generator):
        twice = scope()(gt.no_grad()(original))
        assert [kind(twice) for kind in kinds] == [kind(original) for kind in kinds]
        assert twice.__name__ == original.__name__
        assert inspect.signature(twice) == inspect.signature(original)


def test_the_inner_of_two_decorators_counts():
    @gt.no_grad()
    @gt.enable_grad()
    def recorded():
        yield records()
        yield records()

    @gt.enable_grad()
    @gt.no_grad()
    def silent():
        yield records()
        yield records()

    assert (list(recorded()), list(silent())) == ([True] * 2, [False] * 2)


def test_methods_of_every_kind_and_partial_functions():
    class Model:
        @gt.no_grad()
        def method(self):
            return self, records()

        @gt.no_grad()
        @classmethod
        def of_class(cls):
            return cls, records()

        @staticmethod
        @gt.no_grad()
        def inner(x):
            return x, records()

        @gt.no_grad()
        @staticmethod
        def outer(x):
            yield x, records()

    model = Model()
    assert model.method() == (model, False)
    assert model.of_class() == (Model, False)
    assert model.inner(1) == (1, False)
    assert list(model.outer(1)) == list(Model.outer(1)) == [(1, False)]
    assert gt.no_grad()(functools.partial(records))() is False
    assert gt.no_grad()(np.sum)(gt.ones(1, requires_grad=True)).requires_grad is False
    with pytest.raises(ArgumentError, match=r"no_grad: got an int, .*@gt.no_grad"):
        gt.no_grad()(3)


def test_modes_decorate_and_see_only_the_body():
    count = Count()

    @gt.using_mode(count)
    def steps(x):
        yield x + 1.0
        yield x * 2.0

    for y in steps(gt.ones(1)):
        y - 1.0
    assert count.calls == 2


def test_detect_writes_decorates_and_looks_at_each_call_alone():
    @gt.detect_writes()
    def outer(data, write):
        y = gt.ones(3, requires_grad=True) * data
        if write is not None:
            data[0] = 5.0
            outer(np.ones(3), None)
        return y

    with pytest.raises(TapeError, match="multiply"):
        outer(np.ones(3), 1)
    outer(np.ones(3), None)
