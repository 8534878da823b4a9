"""`gt.jit`: calls go to native code directly, and elsewhere where they must."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler import jit as jit_module
from jitcheck import Counted, assert_close

X = np.random.default_rng(5).normal(size=(5, 7))
V = np.random.default_rng(6).normal(size=7)
BUILTIN = type(len)


# ---- forms in turn ------------------------------------------------------------------------------


def test_calls_go_to_the_form_that_came_last(direct: Any) -> None:
    compiled = gt.jit(Counted(lambda x: x * 2))
    entries: dict[Any, Any] = {}
    for _ in range(3):
        for x in (X, V, X.astype(np.float32)):
            for _ in range(2):
                assert_close(compiled(x), x * 2)
                assert direct(compiled.__call__)
                # Each form has one entry point, which is not made again.
                assert entries.setdefault((x.shape, x.dtype), compiled.__call__) is (
                    compiled.__call__
                )
    assert len({id(each) for each in entries.values()}) == 3
    assert compiled.__wrapped__.count == 3
    for (shape, dtype), call in entries.items():
        assert_close(call(np.ones(shape, dtype)), np.full(shape, 2, dtype))
        assert_close(call(X > 0), (X > 0) * 2)  # of no form so far


def test_keyword_arguments_and_back(direct: Any) -> None:
    compiled = gt.jit(Counted(lambda x, y=3.0, *, scale=1.0: (x + y) * scale))
    for _ in range(2):
        assert_close(compiled(X, V), X + V)
        assert direct(compiled.__call__)
        assert_close(compiled(X, y=V), X + V)
        assert not direct(compiled.__call__)
        assert_close(compiled(y=X, x=V), X + V)
        assert_close(compiled(X, scale=2.0), (X + 3.0) * 2.0)
        assert_close(compiled(X), X + 3.0)
    assert compiled.__wrapped__.count == 5


def test_names_of_arguments_that_are_used_inside(direct: Any) -> None:
    compiled = gt.jit(lambda self, args, kwargs: self + args * kwargs)
    assert_close(compiled(X, V, 2.0), X + V * 2.0)
    assert_close(compiled(self=X, args=V, kwargs=2.0), X + V * 2.0)
    assert_close(compiled(X, kwargs=2.0, args=V), X + V * 2.0)


def test_arguments_that_only_python_can_take_apart(direct: Any) -> None:
    class Shifted(np.ndarray):
        pass

    compiled = gt.jit(Counted(lambda x: np.sum(x * 2, axis=-1)))
    expected = np.sum(X * 2, axis=-1)
    leaf = gt.tensor(X, requires_grad=True)
    for _ in range(2):
        assert_close(compiled(X), expected)
        out = compiled(leaf)
        assert_close(out.detach().numpy(), expected)
        np.sum(out).backward()
        for x in (np.asfortranarray(X), X.view(Shifted), np.repeat(X, 2, axis=0)[::2]):
            assert_close(compiled(x), expected)
        assert_close(gt.grad(lambda x: np.sum(compiled(x)))(X), np.full(X.shape, 2.0))
        assert_close(gt.vmap(compiled)(X), expected)
        assert_close(gt.jit(lambda x: compiled(x) + 1)(X), expected + 1)
        assert direct(compiled.__call__)
    assert_close(np.asarray(leaf.grad), np.full(X.shape, 4.0))


# ---- errors -------------------------------------------------------------------------------------


def test_errors_come_out_unchanged_and_leave_the_function_as_it_was(direct: Any) -> None:
    error = KeyError("what the function raises")

    def function(x: Any, flag: Any = None) -> Any:
        if x.ndim == 3:
            raise error
        return x * 2

    compiled = gt.jit(function)
    assert_close(compiled(X), X * 2)
    call = compiled.__call__
    for wrong in (lambda: compiled(X[None]), lambda: compiled(flag=None, x=X[None])):
        with pytest.raises(KeyError) as caught:
            wrong()
        assert caught.value is error
        assert (error.__cause__, error.__context__) == (None, None)
    with pytest.raises(gt.errors.DTypeError):
        compiled("text")
    with pytest.raises(TypeError, match=r"function\(\)"):
        compiled(X, nonsense=X)
    with pytest.raises(TypeError, match=r"function\(\)"):
        compiled()
    assert compiled.__call__ is call
    assert_close(compiled(X), X * 2)


def test_functions_that_call_themselves_without_end(direct: Any) -> None:
    @gt.jit
    def function(x: Any) -> Any:
        return x + 1 if x.shape == (7,) else function(np.concatenate([x, x]))

    assert_close(function(V), V + 1)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        with pytest.raises(RecursionError):
            function(V[:0])
    finally:
        sys.setrecursionlimit(limit)
    assert_close(function(V), V + 1)


# ---- what is used from outside ------------------------------------------------------------------


def test_captured_arrays_are_bound_and_checked(direct: Any) -> None:
    outside, other = np.ones((2, 3)), V.copy()
    compiled = gt.jit(Counted(lambda x: np.sum(x * other) * outside))
    for shape in ((2, 3), (3, 2), (2, 3), (9,), (0,)):
        outside.resize(shape, refcheck=False)
        for _ in range(2):
            assert_close(compiled(X), np.sum(X * other) * outside)
            assert direct(compiled.__call__)
        outside[...] = 4.0
        other[1] += 1.0
        assert_close(compiled(X), np.sum(X * other) * outside)
    assert compiled.__wrapped__.count == 5
    with pytest.raises(TypeError):
        compiled(X, outside, other)


def test_captured_tensors_and_draws_are_read_anew(direct: Any) -> None:
    w = gt.tensor(V)
    scaled, noisy = gt.jit(lambda x: x * w), gt.jit(lambda x: x + gt.rand(7))
    for _ in range(3):
        assert_close(scaled(X), X * w.numpy())
        w += 1.0
    drawn = [noisy(V) - V for _ in range(3)]
    assert len({each.tobytes() for each in drawn}) == 3
    assert not direct(scaled.__call__)
    assert not direct(noisy.__call__)


# ---- it is a function like others ---------------------------------------------------------------


def scaled(x: Any, scale: float = 2.0) -> Any:
    """A docstring."""
    return x * scale


def test_it_looks_like_the_function() -> None:
    compiled = gt.jit(scaled)
    for _ in range(2):
        assert callable(compiled)
        assert isinstance(compiled, Callable)  # type: ignore[arg-type]
        assert inspect.signature(compiled) == inspect.signature(scaled)
        assert (compiled.__name__, compiled.__doc__) == ("scaled", "A docstring.")
        assert compiled.__module__ == scaled.__module__
        assert compiled.__wrapped__ is scaled
        assert "compiled scaled" in repr(compiled)
        assert_close(compiled.__call__(X), X * 2)
        assert_close(compiled.__call__(X, scale=3.0), X * 3)
        assert_close([*map(compiled, (X, V))], [X * 2, V * 2])
        compiled.note = "attributes can be set"
        assert compiled.note
    assert pickle.loads(pickle.dumps(compiled)).__wrapped__ is scaled


def test_copies_work_without_the_original(direct: Any) -> None:
    compiled = gt.jit(scaled)
    compiled(X)
    other = copy.copy(compiled)
    assert_close((other(X), other(V), compiled(V)), (X * 2, V * 2, V * 2))
    del compiled
    assert_close((other(X), other(V), other(X, scale=3.0)), (X * 2, V * 2, X * 3))


def test_what_is_called_without_the_object_works(direct: Any) -> None:
    function = Counted(lambda x: x * V)
    assert_close(gt.jit(function).__call__(X), X * V)
    compiled = gt.jit(function)
    first = compiled.__call__
    compiled(X)
    last = compiled.__call__
    died = weakref.ref(compiled)
    del compiled
    assert died() is None
    function.count = 0
    for _ in range(3):
        assert_close((last(X), last(V), last(V * 2)), (X * V, V * V, V * 2 * V))
        assert_close((first(X), first(x=V)), (X * V, V * V))
    # Both share a function that was made when it was needed: for X, for V, for V by keyword.
    assert function.count == 3


# ---- how long things live -----------------------------------------------------------------------


def test_all_goes_with_the_last_reference(direct: Any) -> None:
    def use() -> list[weakref.ref[Any]]:
        captured, tensor = V.copy(), gt.tensor(V)

        def function(x: Any, y: Any = 1.0) -> Any:
            return x * captured * y

        plain, with_tensor = gt.jit(function), gt.jit(lambda x: function(x, tensor))
        for compiled in (plain, with_tensor):
            for x in (X, V, X, gt.tensor(X)):
                compiled(x)
        plain(X, y=2.0)
        with pytest.raises(gt.errors.DTypeError):
            plain("text")
        plain(X)
        forms = [form for each in (plain, with_tensor) for form in each._forms]
        return [weakref.ref(each) for each in (captured, tensor, function, plain, *forms)]

    gc.collect()
    gc.disable()
    try:
        references = use()
        assert len(references) > 6
        assert all(reference() is None for reference in references)
    finally:
        gc.enable()


def test_forms_that_are_dropped_take_their_entry_with_them(
    direct: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit_module, "_MOST_FORMS", 1)
    compiled = gt.jit(lambda x: x * 3.0)
    for n in (3, 4, 5):
        compiled(np.ones(n))
    died = weakref.ref(next(iter(compiled._forms)))
    call = weakref.ref(compiled.__call__)
    assert_close(compiled(V), V * 3.0)
    assert (died(), call()) == (None, None)


def test_references_do_not_grow(direct: Any) -> None:
    outside, x, y = V.copy(), X.copy(), X[0].copy()
    compiled = gt.jit(lambda x: x + outside)

    def act() -> None:
        for given in (x, y, x):
            compiled(given)
        compiled(x=x)

    act()
    watched = [outside, x, y, compiled, *compiled._forms, compiled._otherwise]
    before = list(map(sys.getrefcount, watched))
    for _ in range(50):
        act()
    assert list(map(sys.getrefcount, watched)) == before


# ---- threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 100_000], ids=["short", "long"])
def test_threads_exchange_forms(direct: Any, size: int) -> None:
    # Functions that take longer let other threads run meanwhile.
    captured = {n: np.full(3, float(n)) for n in range(1, 5)}
    compiled = gt.jit(lambda x, n: np.sum(np.tanh(x)) * 0.0 + captured[n], static_argnums=1)
    x, wrong, start = np.ones(size), [], threading.Barrier(4)
    for n in captured:
        compiled(x, n)

    def work(seed: int) -> None:
        start.wait()
        for i in range(60):
            # Several calls of a form, so that the entry points are used and exchanged.
            n = 1 + (seed + i // 3) % 4
            got = (compiled(x, n), compiled(x=x, n=n) if i % 20 == 0 else None)
            wrong.extend(each for each in got if each is not None and each.tolist() != [n] * 3)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
