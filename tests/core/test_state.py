"""Contexts, `no_grad` and modes change the state of a block, in any order of leaving.

Threads have a state of their own, tasks inherit one and change only theirs, generators share that
of whoever runs them.
"""

import asyncio
import contextlib
import threading

import numpy as np
import pytest

import gradtape as gt
from builds import starts_anew
from gradtape.errors import ContextError


class Recorder:
    """A mode that notes the ops it sees, under a name of its own."""

    kind = "observing"

    def __init__(self, log=None, name=""):
        self.log = [] if log is None else log
        self.name = name

    def run(self, op, args, params, proceed):
        self.log.append(f"{self.name}{op.name}")
        return proceed(op, args, params)


def records() -> bool:
    """Whether an op on a leaf is recorded now."""
    return (gt.ones(1, requires_grad=True) * 2.0).requires_grad


def state():
    """Everything a block can change, as far as users can tell."""
    return gt.current_context(), records()


SCOPES = {
    "no_grad": gt.no_grad,
    "enable_grad": gt.enable_grad,
    "context": gt.GradientContext,
    "default context": gt.default_context,
    "mode": lambda: gt.using_mode(Recorder()),
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


def holding(scope):
    """A generator that yields inside the block."""
    with scope:
        yield
        yield


# ---- exceptions ---------------------------------------------------------------------------------


@scopes
@pytest.mark.parametrize("outer", [contextlib.nullcontext, gt.no_grad, gt.GradientContext])
def test_an_exception_restores_the_state(scope, outer):
    def fail():
        with scope():
            raise ZeroDivisionError

    with outer():
        before = state()
        with pytest.raises(ZeroDivisionError):
            fail()
        assert state() == before


def test_a_transform_that_fails_leaves_no_level_behind():
    def fails(x):
        with gt.no_grad(), gt.GradientContext():
            return x * gt.ones(7)  # does not fit

    before = state()
    for transform in (gt.grad, gt.vmap, gt.jacfwd, gt.jacrev):
        with pytest.raises(ValueError, match=r"shape|broadcast"):
            transform(fails)(np.ones((3, 3)))
    assert state() == before
    assert gt.grad(lambda x: x * x)(3.0) == 6.0


# ---- threads and tasks --------------------------------------------------------------------------


@starts_anew
@scopes
def test_a_thread_does_not_inherit_the_state(scope):
    with gt.no_grad(), scope():
        context, recording = in_thread(state)
    assert recording
    assert context.id == 0
    assert context is not gt.default_context()


@starts_anew
@scopes
def test_a_block_left_in_another_thread_raises_and_stays_open(scope):
    before = state()
    block = scope()
    block.__enter__()
    inside = state()
    with pytest.raises(ContextError, match="another thread or task"):
        in_thread(lambda: block.__exit__(None, None, None))
    assert state() == inside
    block.__exit__(None, None, None)
    assert state() == before


@starts_anew
def test_a_generator_finished_in_another_thread_raises():
    generator = holding(gt.no_grad())
    next(generator)
    with pytest.raises(ContextError, match="no_grad"):
        in_thread(generator.close)
    assert records()  # nobody can leave the block any more: it is undone here


def test_tasks_do_not_see_each_other():
    async def worker(factor, turns):
        x = gt.ones(2, requires_grad=True)
        for _ in range(turns):
            with gt.GradientContext() as ctx:
                y = x * factor
                await asyncio.sleep(0)
                assert gt.current_context() is ctx
                gt.compute_gradients(y)
            with gt.no_grad():
                await asyncio.sleep(0)
                assert not records()
            await asyncio.sleep(0)
            assert records()
        return np.asarray(x.grad).tolist()

    async def main():
        return await asyncio.gather(*(worker(float(k), 5 + k) for k in range(4)))

    before = state()
    assert asyncio.run(main()) == [[k * (5.0 + k)] * 2 for k in range(4)]
    assert state() == before


def test_tasks_of_a_thread_share_its_default_context():
    async def context():
        await asyncio.sleep(0)
        return gt.current_context()

    async def main():
        return await asyncio.gather(context(), context())

    assert asyncio.run(main()) == [gt.default_context()] * 2


def test_work_handed_to_another_thread_with_its_context_goes_on_in_it():
    # asyncio.to_thread carries all context variables over; a plain thread starts anew.
    async def main():
        gt.ones(1, requires_grad=True) * 2.0
        return await asyncio.to_thread(lambda: (gt.current_context(), gt.default_context()))

    active, default = asyncio.run(main())
    assert active is gt.default_context()
    assert default is not gt.default_context()
    assert default.id == 0


def test_a_block_left_in_another_task_raises():
    async def main():
        block = gt.GradientContext()

        async def enter():
            block.__enter__()

        await asyncio.create_task(enter())
        with pytest.raises(ContextError, match="another thread or task"):
            block.__exit__(None, None, None)

    asyncio.run(main())


# ---- generators ---------------------------------------------------------------------------------


@scopes
@pytest.mark.parametrize("leave", [list, lambda generator: generator.close()])
def test_a_generator_restores_the_state_when_it_ends(scope, leave):
    before = state()
    generator = holding(scope())
    next(generator)
    leave(generator)
    assert state() == before


def test_a_forgotten_generator_restores_the_state():
    before = state()
    generator = holding(gt.no_grad())
    next(generator)
    assert not records()
    del generator
    assert state() == before


@pytest.mark.parametrize("first", SCOPES.values(), ids=SCOPES.keys())
@pytest.mark.parametrize("second", SCOPES.values(), ids=SCOPES.keys())
def test_generators_left_in_the_wrong_order_undo_only_themselves(first, second):
    before = state()
    with second():
        only_second = records()
    one, other = holding(first()), holding(block := second())
    next(one)
    next(other)
    one.close()
    if isinstance(block, gt.GradientContext):
        assert gt.current_context() is block
    else:
        assert gt.current_context() is before[0]
    assert records() == only_second
    other.close()
    assert state() == before


def test_a_generator_that_leaves_keeps_transforms_recording():
    outer = holding(gt.no_grad())
    next(outer)
    with gt.no_grad():

        def square(x):
            outer.close()
            return x * x

        assert gt.grad(square)(3.0) == 6.0


def test_modes_left_in_the_wrong_order():
    log = []
    one = holding(gt.using_mode(Recorder(log, "one ")))
    two = holding(gt.using_mode(Recorder(log, "two ")))
    next(one)
    next(two)
    gt.ones(2) + 1.0
    one.close()
    gt.ones(2) - 1.0
    two.close()
    gt.ones(2) * 2.0
    assert log == ["two add", "one add", "two subtract"]


# ---- decorators ---------------------------------------------------------------------------------


def test_no_grad_and_enable_grad_decorate_functions():
    @gt.no_grad()
    def silent(depth):
        """Its docstring."""
        assert not records()
        if depth:
            silent(depth - 1)
            assert recorded()
        assert not records()
        return depth

    @gt.enable_grad()
    def recorded():
        return records()

    assert silent.__doc__ == "Its docstring."
    assert [silent(3), silent(0)] == [3, 0]
    assert records()
    assert in_thread(lambda: silent(2)) == 2


def test_a_decorated_function_that_fails_restores_the_state():
    @gt.no_grad()
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert records()


def test_one_block_can_be_entered_again_and_inside_itself():
    silent = gt.no_grad()
    for _ in range(2):
        with silent:
            with silent:
                assert not records()
            assert not records()
        assert records()


# ---- modes --------------------------------------------------------------------------------------

X, M = np.array([1.0, 2.0]), np.eye(2)
OPS = {
    "add": lambda x: x + x,
    "multiply": lambda x: x * 2.0,
    "subtract": lambda x: 1.0 - x,
    "divide": lambda x: X / x,
    "negative": lambda x: -x,
    "exp": lambda x: np.exp(x),
    "sum": lambda x: gt.sum(x),
    "reshape": lambda x: x.reshape(2, 1),
    "getitem": lambda x: x[1:],
    "greater": lambda x: x > 0.0,
    "matmul": lambda x: M @ x,
    "stack": lambda x: gt.stack([x, x]),
    "where": lambda x: gt.where(np.array([True, False]), x, 0.0),
    "concatenate": lambda x: np.concatenate([x, X]),
    "gather": lambda x: x[np.array([1, 0])],
    "einsum": lambda x: np.einsum("i,i->", x, x),
}


@pytest.mark.parametrize("requires_grad", [False, True], ids=["untracked", "tracked"])
@pytest.mark.parametrize(("name", "function"), OPS.items(), ids=OPS.keys())
def test_a_mode_sees_every_op_once(name, function, requires_grad):
    x = gt.tensor(X, requires_grad=requires_grad)
    expected = function(x)
    with gt.using_mode(mode := Recorder()):
        result = function(x)
    assert mode.log == [name]
    assert result.requires_grad == expected.requires_grad
    np.testing.assert_array_equal(np.asarray(result.detach()), np.asarray(expected.detach()))


def test_inner_modes_see_a_call_first():
    log = []
    with gt.using_mode(Recorder(log, "outer ")), gt.using_mode(Recorder(log, "inner ")):
        gt.ones(2) + 1.0
    assert log == ["inner add", "outer add"]


def test_what_a_mode_proceeds_with_is_what_is_recorded():
    class Doubled:
        kind = "rewriting"

        def run(self, op, args, params, proceed):
            if op.name != "exp":
                return proceed(op, args, params)
            return proceed(op, (args[0] * 2.0,), params)

    x = gt.tensor(1.0, requires_grad=True)
    with gt.using_mode(Doubled()):
        y = gt.exp(x)
    y.backward()
    assert x.grad.item() == pytest.approx(2 * np.exp(2.0))


def test_a_mode_sees_ops_inside_transforms():
    with gt.using_mode(mode := Recorder()):
        gt.grad(lambda x: np.sin(x) * x)(1.0)
    assert {"sin", "multiply"} <= set(mode.log)
