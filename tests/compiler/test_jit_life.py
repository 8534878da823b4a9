"""`gt.jit`: what is used from outside, how long things live, and many threads at once."""

from __future__ import annotations

import gc
import resource
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from builds import needs_lock
from gradtape.compiler import jit as jit_module
from gradtape.compiler.cpu.llvm.link import Library, compile_module
from gradtape.errors import WriteError
from jitcheck import Counted, assert_close

X = np.random.default_rng(5).normal(size=(5, 7))
V = np.random.default_rng(6).normal(size=7)


# ---- arrays and tensors from outside ------------------------------------------------------------


def test_writes_into_a_captured_array_are_seen() -> None:
    outside, turned = V.copy(), X.copy().T
    compiled = gt.jit(Counted(lambda x: x * outside + turned[:, 0]))
    for factor in (1.0, 2.0, -3.0):
        outside[...] = V * factor
        turned[0] = factor
        assert_close(compiled(X), X * outside + turned[:, 0])
    assert compiled.__wrapped__.count == 1


def test_a_captured_array_of_another_shape_is_traced_again() -> None:
    outside = np.arange(6.0).reshape(2, 3)
    compiled = gt.jit(Counted(lambda x: np.sum(x) * outside))
    assert_close(compiled(X), np.sum(X) * outside)
    outside.resize((3, 2), refcheck=False)
    assert_close(compiled(X), np.sum(X) * outside)
    assert compiled.__wrapped__.count == 2


def test_new_values_of_a_captured_tensor_are_seen() -> None:
    w = gt.tensor(V)
    part = w[2:4]
    compiled = gt.jit(Counted(lambda x: x * w + np.sum(part)))

    def expected() -> Any:
        return X * w.numpy() + np.sum(w.numpy()[2:4])

    assert_close(compiled(X), expected())
    w += 1.0
    assert_close(compiled(X), expected())
    w[3] = 100.0
    assert_close(compiled(X), expected())
    part[0] = -7.0
    assert_close(compiled(X), expected())
    assert compiled.__wrapped__.count == 1


def test_optimizer_steps_are_seen_and_leaves_get_gradients() -> None:
    w, fixed = gt.tensor(V, requires_grad=True), gt.tensor(V)
    optimizer = gt.optim.SGD([w], lr=0.1)
    compiled = gt.jit(Counted(lambda x: np.sum((x * w - fixed) ** 2)))
    eager = V.copy()
    for _ in range(4):
        loss = compiled(X)
        optimizer.zero_grad()
        loss.backward()
        gradient = np.sum(2 * X * (X * eager - V), axis=0)
        assert_close(np.asarray(w.grad), gradient, 512)
        optimizer.step()
        eager = eager - 0.1 * gradient
        assert_close(np.asarray(w.detach()), eager, 512)
    assert fixed.grad is None
    assert compiled.__wrapped__.count == 1


def test_a_leaf_that_stops_to_require_gradients() -> None:
    w = gt.tensor(V, requires_grad=True)
    compiled = gt.jit(lambda x: np.sum(x * w))
    assert compiled(X).requires_grad
    w.set_requires_grad(False)
    assert type(compiled(X)) is np.float64


def test_tensors_of_a_transform_that_has_returned_are_traced_again() -> None:
    outside: list[Any] = []
    compiled = gt.jit(Counted(lambda x: x * outside[-1]))

    def function(y: Any) -> Any:
        outside.append(y)
        return np.sum(compiled(X) + compiled(X))

    for k in (1.0, 2.0):
        assert_close(gt.grad(function)(V * k), 2 * np.sum(X, axis=0), 256)
    assert compiled.__wrapped__.count == 2
    outside.append(V)
    assert_close(compiled(X), X * V)
    assert compiled.__wrapped__.count == 3


def test_compiled_functions_inside_use_what_is_traced_outside() -> None:
    def outer(x: Any, v: Any) -> Any:
        inner = gt.jit(lambda y: y * v + np.sum(x))
        return inner(x) + inner(x * 2)

    compiled = gt.jit(outer)
    for _ in range(2):
        assert_close(compiled(X, V), outer(X, V))
    assert_close(gt.grad(lambda v: np.sum(compiled(X, v)))(V), 3 * np.sum(X, axis=0), 256)


def test_writing_to_what_is_outside_raises() -> None:
    tensor, array = gt.tensor(V), V.copy()

    def writes_tensor(x: Any) -> Any:
        tensor[0] = x[0, 0]
        return x

    def writes_array(x: Any) -> Any:
        y = x * array
        array[0] = 5.0
        return y * array

    for function in (writes_tensor, writes_array):
        with pytest.raises(WriteError, match="jit: the function writes"):
            gt.jit(function)(X)
    assert_close(tensor.numpy(), V)


def test_random_numbers_are_drawn_at_each_call() -> None:
    compiled = gt.jit(lambda x: x + gt.rand(7))
    gt.manual_seed(3)
    drawn = [compiled(V) for _ in range(3)]
    gt.manual_seed(3)
    assert_close(drawn, [V + gt.rand(7).numpy() for _ in range(3)])
    assert not np.array_equal(drawn[0], drawn[1])


# ---- how long things live -----------------------------------------------------------------------


class Owned(np.ndarray):
    """An array that can be watched."""


def owned(shape: Any) -> Any:
    return np.ones(shape).view(Owned)


def test_functions_and_what_they_captured_die_with_them() -> None:
    def use() -> list[weakref.ref[Any]]:
        captured, tensor, weights = owned(7), gt.tensor(V), gt.tensor(V, requires_grad=True)

        def function(x: Any) -> Any:
            return np.sum(x * captured + tensor * weights)

        compiled = gt.jit(function)
        for call in (compiled, gt.jit(gt.grad(function)), gt.grad(compiled), gt.vmap(compiled)):
            call(X)
        compiled(X).backward()
        return [weakref.ref(each) for each in (function, captured, tensor, weights)]

    gc.collect()
    gc.disable()
    try:
        assert all(reference() is None for reference in use())
    finally:
        gc.enable()


def test_arguments_and_results_are_not_kept() -> None:
    compiled = gt.jit(lambda x: (x * 2, x))
    for make in (owned, lambda n: np.ones(n), lambda n: gt.ones(n)):
        x = make(7)
        out = compiled(x)
        died = [weakref.ref(x), *map(weakref.ref, out)]
        del x, out
        assert all(reference() is None for reference in died)


def test_objects_with_compiled_methods_die() -> None:
    class Model:
        def __init__(self) -> None:
            self.scale = owned(7)

        @gt.jit
        def apply(self, x: Any) -> Any:
            return x * self.scale

    model = Model()
    method = model.apply
    assert_close(method(X), X)
    died = [weakref.ref(model), weakref.ref(model.scale)]
    del model
    assert died[0]() is not None
    assert_close(method(X), X)  # a bound method keeps its object
    del method
    assert all(reference() is None for reference in died)
    assert not Model.apply._methods


def test_code_is_unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries: list[weakref.ref[Library]] = []
    make = Library.__init__

    def noted(self: Library, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        libraries.append(weakref.ref(self))

    monkeypatch.setattr(Library, "__init__", noted)
    monkeypatch.setattr(jit_module, "_MOST_FORMS", 2)
    compiled = gt.jit(lambda x: np.exp(x) * 3.0)
    for n in range(1, 6):
        compiled(np.ones(n))
    assert len(libraries) == 5
    assert sum(library() is not None for library in libraries) == 2
    del compiled
    assert all(library() is None for library in libraries)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for its memory")
def test_unloaded_code_gives_its_memory_back() -> None:
    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    code = compile_module("define i32 @run(ptr %in, ptr %out) { ret i32 0 }")
    for _ in range(100):
        Library(code, {}, ["run"])
    before = resident()
    for _ in range(300):
        Library(code, {}, ["run"])
    # LLVM's own linker would keep 9 kB of each.
    assert resident() - before < 300 * 3000


def traced_bytes() -> int:
    return tracemalloc.get_traced_memory()[0]


def growth(work: Callable[[int], Any], count: int, measure: Callable[[], int]) -> int:
    """By how much that is measured grows while `work` is called so many times."""
    for k in range(count):
        work(k)
    gc.collect()
    before = measure()
    for k in range(count):
        work(k)
    gc.collect()
    return measure() - before


@pytest.fixture
def _memory_traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def work_that_calls() -> Callable[[int], None]:
    w = gt.tensor(V, requires_grad=True)
    compiled = gt.jit(lambda x, c: (np.sum(x * w) * c, x * c))
    plain = gt.jit(lambda x: {"a": x * 2, "b": [x.sum(), None]})

    def work(k: int) -> None:
        plain(X)
        compiled(X, float(k))[0].backward()
        gt.vmap(plain)(X)

    return work


def test_calls_do_not_grow_memory() -> None:
    # Lists of free objects that Python keeps take some 100; a leak would be an object per call.
    assert growth(work_that_calls(), 400, sys.getallocatedblocks) < 300


@pytest.mark.slow
@pytest.mark.usefixtures("_memory_traced")
def test_calls_do_not_grow_memory_by_bytes() -> None:
    # Here these lists are some 80 kB.
    assert growth(work_that_calls(), 1000, traced_bytes) < 1000 * 100


@needs_lock  # without it, memory is freed later
@pytest.mark.usefixtures("_memory_traced")
def test_recompilations_do_not_grow_memory() -> None:
    def work(k: int) -> None:
        gt.jit(lambda x: np.tanh(x) * 2.0)(V)
        gt.grad(gt.jit(lambda x: np.sum(np.sin(x))))(V)

    # A function that is kept takes 26 kB. What is left is what caches of Python and NumPy fill, for
    # the first hundred times, which depends on their versions.
    assert growth(work, 8, traced_bytes) < 8 * 5000


# ---- threads ------------------------------------------------------------------------------------


def in_threads(count: int, work: Any) -> None:
    """Run `work(k)` in so many threads at once; the first error is raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def run(k: int) -> None:
        try:
            start.wait()
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # they take turns in the middle of everything
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


def test_threads_compile_and_call_at_once() -> None:
    def function(x: Any, c: Any) -> Any:
        return np.tanh(x) * c, np.sum(x * V[: x.shape[-1]])

    compiled, gradient = gt.jit(function), gt.jit(gt.grad(lambda x: np.sum(np.sin(x) ** 2)))

    def work(k: int) -> None:
        for n in (*range(1, 4), *range(1, 4)):
            x = X[:, :n] + k
            assert_close(compiled(x, float(k)), function(x, float(k)))
            assert_close(gradient(x), 2 * np.sin(x) * np.cos(x), 256)

    in_threads(6, work)


def test_threads_do_not_mix_up_what_forms_captured() -> None:
    # The captured arrays have one shape, and each form has its own.
    captured = {n: np.full(3, float(n)) for n in (1, 2)}
    compiled = gt.jit(lambda x: np.sum(x) * captured[x.shape[0]])
    ones = {n: np.ones(n) for n in captured}

    def work(k: int) -> None:
        for i in range(300):
            n = 1 + (i + k) % 2
            assert compiled(ones[n])[0] == n * n

    in_threads(4, work)


def test_functions_that_wait_for_other_threads_are_traced() -> None:
    @gt.jit
    def outer(x: Any) -> Any:
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append(outer(X[0])))
        if x.ndim == 2:
            thread.start()
            thread.join(timeout=60)
            assert len(results) == 1
        return x * 2

    assert_close(outer(X), X * 2)
