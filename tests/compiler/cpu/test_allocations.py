"""The meter of memory: exact figures of NumPy's arrays, of blocks and of arenas, in all threads."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.cpu.runtime import allocations, blocks, blocks_native
from gradtape.compiler.cpu.runtime.allocations import Meter, waiting_bytes

MB = 1 << 20
N = MB // 8  # a megabyte of float64

pytestmark = pytest.mark.skipif(
    not isinstance(allocations._source(), allocations._Native),
    reason="tracemalloc counts on this interpreter, and counts more than arrays",
)
keeps_blocks = pytest.mark.skipif(blocks.for_array(MB) is None, reason="nothing is kept")


@pytest.fixture
def meter() -> Iterator[Meter]:
    gt.tanh(np.ones(N))  # loads the kernels
    gc.collect()
    made = Meter()
    made.start()
    yield made
    made.stop()


def in_use(meter: Meter) -> int:
    return meter.figures().current


def test_small_arrays_are_counted_by_the_byte(meter):
    array = np.zeros(1000)
    assert in_use(meter) == 8000
    other = np.empty((3, 5), np.float32)
    assert in_use(meter) == 8060
    del array
    assert in_use(meter) == 60
    del other
    assert in_use(meter) == 0


@pytest.mark.parametrize("size", [N, N + 1, 3 * N // 2, 40 * N])
def test_results_of_ops_are_counted_by_what_was_asked_for(meter, size):
    x = np.ones(size)
    before = in_use(meter)
    y = gt.tanh(x)
    assert in_use(meter) - before == 8 * size
    del y
    assert in_use(meter) == before


def test_arrays_from_before_are_counted_when_they_are_freed():
    small, large = np.ones(1000), gt.tanh(np.ones(N))
    meter = Meter()
    meter.start()
    del small
    assert in_use(meter) == -8000
    del large
    assert in_use(meter) == -8000 - MB
    assert meter.figures().peak == 0
    meter.stop()


def test_views_take_nothing(meter):
    array = np.ones(1000)
    views = [array[1:], array.reshape(10, 100), array.T]
    assert in_use(meter) == 8000
    assert len(views) == 3


def test_peak_and_total(meter):
    meter.start()
    for _ in range(3):
        array = np.empty(1000)
        del array
    assert meter.figures() == (0, 8000, 24000)


def test_resized_arrays(meter):
    array = np.ones(1000)
    array.resize(2000, refcheck=False)
    # Only `malloc` knows what was there before, rounded up.
    assert abs(in_use(meter) - 16000) <= 32
    del array
    assert abs(in_use(meter)) <= 32


@keeps_blocks
def test_block_that_is_resized_in_place(meter):
    array = blocks.pooled()(np.empty, 2 * N)
    array.resize(2 * N - 100, refcheck=False)
    assert in_use(meter) == 2 * MB - 800
    del array
    assert in_use(meter) == 0


@keeps_blocks
def test_what_waits_is_not_in_use(meter):
    blocks.release()
    y = gt.tanh(np.ones(N))
    assert waiting_bytes() == 0
    del y
    assert waiting_bytes() == MB
    assert in_use(meter) == 0
    blocks.release()
    assert waiting_bytes() == in_use(meter) == 0


def test_arena_of_a_compiled_function_counts_while_it_runs(meter):
    def function(x: Any) -> Any:
        y = np.sort(x * 2.0)
        return np.sum(np.sort(y * y) * y)

    compiled = gt.jit(function)
    x = np.linspace(0.0, 1.0, N)
    compiled(x)
    before = in_use(meter)
    meter.lap()
    compiled(x)
    lap = meter.lap()
    assert lap.current == before
    assert lap.peak - before >= 2 * MB


def test_small_arena_counts_as_a_whole(meter):
    compiled = gt.jit(lambda x: np.sum(np.cumsum(x) * x[::-1]))
    x = np.linspace(0.0, 1.0, 4000)  # more than fits on the stack
    compiled(x)
    meter.lap()
    before = in_use(meter)
    compiled(x)
    lap = meter.lap()
    assert lap.peak - before >= blocks_native.SMALL
    assert lap.current == before


def test_other_threads_are_counted(meter):
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.extend([np.ones(500), gt.tanh(np.ones(N))]))
    thread.start()
    thread.join()
    assert in_use(meter) == 4000 + MB
    made.clear()
    assert in_use(meter) == 0


def test_threads_that_allocate_at_once(meter):
    def work() -> None:
        for _ in range(200):
            np.ones(1000)
            gt.tanh(np.ones(N))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert in_use(meter) == 0
    assert meter.figures().allocated >= 800 * (2 * MB + 8000)


def test_meters_have_their_own_start_and_peak(meter):
    first = np.empty(1000)
    inner = Meter()
    inner.start()
    assert inner.figures() == (0, 0, 0)
    second = np.empty(500)
    del second
    assert inner.figures()[:2] == (0, 4000)
    inner.stop()
    third = np.empty(4000)
    assert inner.figures()[:2] == (0, 4000)
    assert meter.figures()[:2] == (40000, 40000)
    del first, third
    assert meter.figures()[:2] == (0, 40000)


def test_lap_has_the_peak_since_the_last_one(meter):
    np.empty(5000)
    assert meter.lap()[:2] == (0, 40000)
    np.empty(1000)
    other = Meter()
    other.start()  # does not take the peak away
    other.stop()
    assert meter.lap()[:2] == (0, 8000)
    assert meter.figures().peak == 40000


def test_nothing_is_counted_and_numpys_table_is_its_own_when_off():
    source: Any = allocations._source()
    meter = Meter()
    meter.start()
    assert tuple(source._table) == source._ours
    meter.stop()
    meter.stop()
    assert tuple(source._table) == source._numpys
    before = source.read()
    array, block = np.ones(1000), gt.tanh(np.ones(N))
    assert source.read() == before
    del array, block
    assert source.read() == before


def test_functions_that_somebody_else_put_into_the_table_stay():
    source: Any = allocations._source()
    own = tuple(source._table)
    meter = Meter()
    meter.start()
    theirs = [*source._ours[:3], own[3]]
    source._table[:] = theirs
    meter.stop()
    try:
        assert list(source._table) == theirs
    finally:
        source._table[:] = list(own)


def test_meter_can_be_started_again(meter):
    kept = np.ones(1000)
    meter.start()
    assert meter.figures() == (0, 0, 0)
    del kept
    assert in_use(meter) == -8000


def test_pool_of_cupy_is_added(meter, monkeypatch):
    used = [5000]
    pool = types.SimpleNamespace(used_bytes=lambda: used[0])
    cupy = types.SimpleNamespace(get_default_memory_pool=lambda: pool)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    meter.start()
    used[0] = 12000
    assert meter.figures()[:2] == (7000, 7000)
    used[0] = 6000
    assert meter.figures()[:2] == (1000, 7000)
    meter.stop()


def in_child(check: Callable[[], bool]) -> bool:
    """Whether a check is true in a forked process, which ends with it, whatever happens."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if check() else 1
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def test_child_process_goes_on(meter):
    def check() -> bool:
        array = np.ones(1000)
        return in_use(meter) == array.nbytes

    assert in_child(check)


def test_child_process_goes_on_where_cupy_cannot_be_asked(meter, monkeypatch):
    class CUDARuntimeError(RuntimeError):
        pass

    def used_bytes() -> int:
        if os.getpid() != parent:
            raise CUDARuntimeError("cudaErrorInitializationError: initialization error")
        return 5000

    parent = os.getpid()
    pool = types.SimpleNamespace(used_bytes=used_bytes)
    runtime = types.SimpleNamespace(CUDARuntimeError=CUDARuntimeError)
    cuda = types.SimpleNamespace(runtime=runtime)
    cupy = types.SimpleNamespace(get_default_memory_pool=lambda: pool, cuda=cuda)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    meter.start()

    def check() -> bool:
        array = np.ones(1000)
        return in_use(meter) == array.nbytes

    assert in_child(check)
    meter.stop()


PLAIN = """
import numpy as np, gradtape as gt
from gradtape.compiler.cpu.runtime.allocations import Meter, _source
gt.tanh(np.ones(1 << 17))
meter = Meter()
meter.start()
y = gt.tanh(np.ones(1 << 17))
current, peak, _ = meter.figures()
assert 1 << 20 <= current < (1 << 20) + 100_000, current
assert 2 << 20 <= peak < (2 << 20) + 100_000, peak
del y
assert meter.figures().current < 100_000
meter.stop()
print(type(_source()).__name__)
"""


@pytest.mark.parametrize(
    ("settings", "source"),
    [
        ({"GRADTAPE_WITHOUT": "all"}, "_Traced"),
        ({"GRADTAPE_WITHOUT": "entry"}, "_Traced"),
        ({"GRADTAPE_KEEP_MB": "0"}, "_Native"),
    ],
)
def test_with_pieces_switched_off(settings, source):
    environment = {**os.environ, **settings}
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [source]


def test_words_of_the_counters_are_where_they_are_read():
    address = ctypes.CFUNCTYPE(ctypes.c_void_p)(blocks.counters()["gt_counters"])()
    meters = ctypes.c_int64.from_address(address or 0)
    before = meters.value
    meter = Meter()
    meter.start()
    assert meters.value == before + 1
    meter.stop()
    assert meters.value == before
