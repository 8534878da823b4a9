"""Kept memory: blocks of temporaries and large results that wait for the next call."""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy._core import multiarray

import gradtape as gt
from gradtape import config
from gradtape.compiler.cpu.llvm.link import Library, host_as_it_is
from gradtape.compiler.cpu.runtime import blocks, blocks_native, cache
from gradtape.core.copies import copied
from gradtape.errors import ArgumentError, IndexingError

MB = 1 << 20
N = 1 << 17  # a megabyte of float64

pytestmark = pytest.mark.skipif(
    blocks.for_array(MB) is None, reason="NumPy's own memory is used on this interpreter"
)


def handler_of(array: Any) -> str:
    return str(multiarray.get_handler_name(array))


@pytest.fixture(autouse=True)
def _nothing_waits() -> Iterator[None]:
    blocks.release()
    yield
    blocks.release()


class Store:
    """A store of its own, apart from that of the process."""

    def __init__(self, bound: int) -> None:
        text = blocks_native.source(mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, None)
        code = cache.compiled(text, host_as_it_is())
        self._library = Library(code, {}, blocks_native.EXPORTS)
        self._table = ctypes.create_string_buffer(blocks_native.TABLE_BYTES)
        self.take = self._function("gt_take", ctypes.c_void_p, ctypes.c_int64)
        self.give = self._function("gt_give", None, ctypes.c_void_p)
        self.kept = self._function("gt_kept", ctypes.c_int64)
        self.release = self._function("gt_release", None)
        keep = self._function("gt_keep", None, ctypes.c_int64, ctypes.c_void_p)
        keep(bound, ctypes.addressof(self._table))

    def _function(self, name: str, *types: Any) -> Any:
        return ctypes.CFUNCTYPE(*types)(self._library.address(name))


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store(64 * MB)
    yield made
    made.release()


# ---- arrays ----


def made_by_an_op() -> Any:
    return gt.sin(np.ones(N))


def made_by_numpy_for_an_op() -> Any:
    made_by_an_op()  # loads the compiler
    return gt.sort(gt.tensor(np.ones(N))).value


def made_by_scipy_for_an_op() -> Any:
    made_by_an_op()
    return gt.fft.fft(gt.tensor(np.ones(N))).value


def made_by_a_gradient() -> Any:
    return gt.grad(lambda x: gt.sum(gt.exp(x) * x))(np.ones(N))


def made_by_a_copy() -> Any:
    return copied(np.ones((512, 256)).T)


def made_by_compiled_code() -> Any:
    return gt.jit(lambda x: x * 2.0)(np.ones(N))


@pytest.mark.parametrize(
    "make",
    [
        made_by_an_op,
        made_by_numpy_for_an_op,
        made_by_scipy_for_an_op,
        made_by_a_gradient,
        made_by_a_copy,
        made_by_compiled_code,
    ],
)
def test_large_results_own_kept_memory(make: Callable[[], Any]) -> None:
    array = make()
    assert handler_of(array) == "gradtape"
    assert array.base is None
    assert array.flags.owndata
    assert array.flags.carray
    assert array.ctypes.data % 64 == 0
    assert sys.getsizeof(array) > array.nbytes


def test_the_next_result_takes_the_memory_of_the_last() -> None:
    x = np.ones(N)
    first = gt.sin(x)
    address = first.ctypes.data
    view = first[1:]
    del first
    assert gt.cos(x).ctypes.data != address  # the view still has it
    del view
    assert gt.jit(lambda x: x + 1.0)(x).ctypes.data == address


def test_small_results_and_arrays_of_users_are_left_to_numpy() -> None:
    large = gt.sin(np.ones(N))
    assert handler_of(np.ones(N)) == handler_of(large + 1.0) == handler_of(large.copy())
    assert handler_of(np.ones(N)) != "gradtape"
    assert handler_of(gt.jit(lambda x: x * 2.0)(np.ones(5))) != "gradtape"
    assert handler_of(gt.sum(np.ones((N, 4)), axis=0)) != "gradtape"


def test_what_users_functions_make_is_theirs() -> None:
    made = []

    @gt.custom_vjp
    def squared(x: Any) -> Any:
        made.append(np.empty(N))
        return x * x

    squared.defvjp(lambda ct, out, x: (2 * x * ct,))
    gt.sin(np.ones(N))
    squared(np.ones(N))
    gt.jit(lambda x: squared(x) + 1.0)(np.ones(N))
    assert len(made) >= 2
    assert {handler_of(array) for array in made} == {handler_of(np.empty(N))}


def test_resizing() -> None:
    array = blocks.pooled()(np.empty, 100)
    array[:] = np.arange(100.0)
    for size in (N, 2 * N, 2 * N - 5, 100, 1, 0, 50):
        before = array.copy()
        array.resize(size, refcheck=False)
        shared = min(before.size, size)
        assert handler_of(array) == "gradtape"
        assert np.array_equal(array[:shared], before[:shared])
        assert not array[shared:].any()


def test_zeros_are_zeros() -> None:
    pooled = blocks.pooled()
    pooled(np.full, N, 7.0)  # its block is used again
    for size in (0, 10, N, 40 * N):
        assert not pooled(np.zeros, size).any()


def test_pickles_and_views() -> None:
    array = gt.sin(np.ones(N))
    again = pickle.loads(pickle.dumps(array))
    assert np.array_equal(again, array)
    assert handler_of(again) != "gradtape"
    assert memoryview(array).nbytes == array.nbytes
    assert np.frombuffer(array)[-1] == array[-1]


@pytest.mark.parametrize("size", [-1, 1 << 62, 1 << 58])
def test_numpy_has_its_own_handler_back_after_an_error(size: int) -> None:
    before = handler_of(np.empty(1))
    with pytest.raises((ValueError, MemoryError)):
        blocks.pooled()(np.empty, size, np.uint8)
    assert handler_of(np.empty(N)) == before


def test_calls_within_calls() -> None:
    pooled = blocks.pooled()
    inner, outer = pooled(lambda: (pooled(np.empty, shape=N), np.empty(N)))
    assert handler_of(inner) == handler_of(outer) == "gradtape" != handler_of(np.empty(N))
    with pytest.raises(TypeError, match="not callable"):
        pooled(3)


# ---- the store ----


def test_sizes(store: Store, rng: np.random.Generator) -> None:
    sizes = [1, (1 << 16), (1 << 16) + 1, *(2 ** rng.uniform(0, 23, 60)).astype(int)]
    for size in map(int, sizes):
        address = store.take(size)
        assert address % 64 == 0
        ctypes.memset(address, 1, size)
        store.give(address)
        kept = store.kept()
        assert max(size, 1 << 16) <= kept <= max(size * 9 / 8, 1 << 16)
        assert store.take(kept * 15 // 16 + 1) == address  # fits, and is not much smaller
        store.give(address)
        store.release()
        assert store.kept() == 0


def test_the_bound_holds(store: Store, rng: np.random.Generator) -> None:
    held = [store.take(int(size)) for size in 2 ** rng.uniform(16, 25, 60)]
    for address in held:
        store.give(address)
        assert 0 <= store.kept() <= 64 * MB
    assert store.kept() > 32 * MB


def test_nothing_larger_than_the_bound_is_kept(store: Store) -> None:
    address = store.take(65 * MB)
    ctypes.memset(address, 1, 65 * MB)
    store.give(address)
    assert store.kept() == 0
    assert store.take(1 << 55) is None


def test_sizes_that_are_no_longer_asked_for_make_room(store: Store) -> None:
    def step(size: int, count: int) -> None:
        for address in [store.take(size) for _ in range(count)]:
            store.give(address)

    for _ in range(3):
        step(MB, 60)
    for _ in range(3):
        step(7 * MB, 8)
    held = [store.take(7 * MB) for _ in range(8)]
    assert store.kept() <= 10 * MB  # nearly all that was kept was of that size
    for address in held:
        store.give(address)


def test_sizes_that_come_in_turns_do_not_wait_side_by_side(store: Store) -> None:
    most = 0
    for _ in range(3):
        for size in range(4, 13):
            held = [store.take(size * MB) for _ in range(2)]
            most = max(most, 2 * size * MB)
            assert store.kept() + 2 * size * MB <= most * 9 // 8 + 16 * MB
            for address in held:
                store.give(address)


def test_threads_never_share_a_block(store: Store) -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        held: list[tuple[Any, int, int]] = []
        for n in range(400):
            # Few sizes, so that blocks change hands.
            size = int(rng.choice([1 << 16, 100_000, 1 << 17, MB]))
            address = store.take(size)
            words = (ctypes.c_int64 * (size // 8)).from_address(address)
            words[0] = words[-1] = mark = seed * 1000 + n
            held.append((words, mark, address))
            if len(held) > 6:
                words, mark, address = held.pop(int(rng.integers(6)))
                if (words[0], words[-1]) != (mark, mark):
                    wrong.append(mark)
                store.give(address)
        for words, mark, address in held:
            if (words[0], words[-1]) != (mark, mark):
                wrong.append(mark)
            store.give(address)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert 0 < store.kept() <= 64 * MB
    store.release()
    assert store.kept() == 0


# ---- compiled functions ----

# Elements with a small arena, and with one that is borrowed by its size.
ARENAS = [5_000, 50_000]


def chained(x: Any) -> Any:
    return gt.cumsum(gt.sin(gt.cumsum(x) * 0.5))


def test_forms_share_the_memory_of_temporaries() -> None:
    compiled = gt.jit(lambda x: gt.sum(chained(x)))
    compiled(np.ones(N + 8))
    kept = blocks.kept()
    assert kept > MB
    for k in range(2, 6):
        compiled(np.ones(N + 8 * k))
    assert blocks.kept() == kept


@pytest.mark.parametrize("size", ARENAS)
def test_threads_that_call_the_same_form_have_memory_of_their_own(size: int) -> None:
    compiled = gt.jit(chained)
    inputs = [np.linspace(0.0, k, size) for k in range(4)]
    wanted = [compiled(x) for x in inputs]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(40):
            if not np.array_equal(compiled(inputs[k]), wanted[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_comes_back_from_a_call_that_fails() -> None:
    compiled = gt.jit(lambda x, i: gt.sum(chained(x)[i]))
    x = np.ones(N)
    compiled(x, np.array([1, 2]))
    before = blocks.kept()
    assert before >= MB
    for _ in range(3):
        with pytest.raises(IndexingError):
            compiled(x, np.array([1, N]))
    assert blocks.kept() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_children_of_a_busy_process_have_a_store_in_order(store: Store) -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            for address in [store.take(MB) for _ in range(3)]:
                store.give(address)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(8):
            child = os.fork()
            if child == 0:
                held = [store.take(MB) for _ in range(8)]
                for n, address in enumerate(held):
                    ctypes.memset(address, n, MB)
                right = all(ctypes.string_at(a, 1)[0] == n for n, a in enumerate(held))
                for address in held:
                    store.give(address)
                os._exit(0 if right and len(set(held)) == 8 and store.kept() >= 8 * MB else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


# ---- the setting ----


@pytest.mark.parametrize(("text", "bound"), [("", 128 * MB), ("0", 0), (" 64 ", 64 * MB)])
def test_how_much_is_kept(monkeypatch: pytest.MonkeyPatch, text: str, bound: int) -> None:
    monkeypatch.setenv("GRADTAPE_KEEP_MB", text)
    assert config.kept_bytes() == bound


@pytest.mark.parametrize("text", ["much", "-1", "1.5", "1e3"])
def test_a_number_of_megabytes_is_asked_for(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("GRADTAPE_KEEP_MB", text)
    with pytest.raises(ArgumentError, match=f"GRADTAPE_KEEP_MB: got '{text}', expected"):
        config.kept_bytes()
