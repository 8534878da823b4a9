"""Files without a name: ranges that are reserved, written, mapped and used again."""

from __future__ import annotations

import errno
import os
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradtape.core import offload, scratch_file
from gradtape.core.offload import LEAST_BYTES, Offloaded, Store
from gradtape.core.scratch_file import ScratchFile, range_of
from gradtape.errors import OffloadError

STEP = scratch_file._STEP


def filled(file: ScratchFile, length: int, byte: int) -> Any:
    taken = file.take(length)
    assert taken is not None
    taken.write(memoryview(bytes([byte]) * length))
    return taken


# ---- ranges -------------------------------------------------------------------------------------


def test_ranges_are_read_back_and_do_not_overlap() -> None:
    file = ScratchFile(None)
    ranges = [filled(file, 3 * STEP + n, n) for n in range(1, 9)]
    for n, each in enumerate(ranges, start=1):
        np.testing.assert_array_equal(each.mapped(), np.full(3 * STEP + n, n, np.uint8))
    assert file.size == 8 * 4 * STEP


def test_space_is_used_again() -> None:
    file = ScratchFile(None)
    ranges = [filled(file, STEP, n) for n in range(8)]
    del ranges[2:4]
    ranges.append(filled(file, 2 * STEP, 9))  # two neighbours make room for one
    assert file.size == 8 * STEP
    ranges.pop(0)
    ranges.append(filled(file, STEP // 2, 10))
    assert file.size == 8 * STEP
    ranges.append(filled(file, STEP, 11))
    assert file.size == 9 * STEP
    ranges.clear()
    ranges.append(filled(file, 10 * STEP, 12))  # what is free at the end grows
    assert file.size == 10 * STEP


def test_ranges_that_are_read_are_not_used_again() -> None:
    file = ScratchFile(None)
    mapped = filled(file, STEP, 1).mapped()
    assert range_of(mapped) is not None
    part = mapped[10:]
    del mapped
    other = filled(file, STEP, 2)
    assert part[0] == 1
    del part
    assert filled(file, STEP, 3).mapped()[0] == 3
    assert file.size == 2 * STEP
    assert other.mapped()[0] == 2


def test_a_range_is_mapped_once_for_all() -> None:
    taken = filled(ScratchFile(None), STEP, 1)
    assert taken.mapped() is not None
    first = taken.mapped()
    assert taken.mapped() is first
    assert not first.flags.writeable


def test_a_range_that_is_taken_in_the_middle_of_taking_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal handler does."""
    store, arrays, kept = Store(None), [np.full(LEAST_BYTES, n, np.uint8) for n in range(2)], []
    reserve = ScratchFile._reserve

    def interrupted(self: ScratchFile, end: int) -> None:
        monkeypatch.setattr(ScratchFile, "_reserve", reserve)
        kept.append(store.put(arrays[1]))
        reserve(self, end)

    monkeypatch.setattr(ScratchFile, "_reserve", interrupted)
    kept.append(store.put(arrays[0]))
    kept += [store.put(np.full(LEAST_BYTES, n, np.uint8)) for n in range(2, 5)]
    assert [each.array()[-1] for each in kept] == [1, 0, 2, 3, 4]


def test_the_file_is_closed_with_its_last_array() -> None:
    def held() -> set[str]:
        links = {f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")}
        return {link for link in links if os.path.lexists(link)}

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("the system does not list open files")
    before = len(held())
    store = Store(None)
    array = store.put(np.ones(LEAST_BYTES)).array()
    del store
    assert len(held()) > before
    assert array.sum() == LEAST_BYTES
    del array
    assert len(held()) == before


# ---- arrays -------------------------------------------------------------------------------------

WIDE = np.arange(300_000.0).reshape(300, 1000)


def layouts() -> dict[str, Any]:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    cube = np.arange(240_000.0).reshape(40, 60, 100)
    return {
        "C": WIDE.copy(),
        "F": np.asfortranarray(WIDE),
        "permuted": cube.transpose(1, 2, 0),
        "a part": WIDE[20:-20],
        "with gaps": WIDE[:, ::2],
        "backwards": WIDE[::-1, ::-2],
        "windows": np.lib.stride_tricks.sliding_window_view(WIDE, 3, 1)[::2],
        "broadcast": np.broadcast_to(WIDE, (3, 300, 1000)),
        "complex": WIDE + 1j * WIDE,
        "real part": (WIDE + 1j * WIDE).real,
        "float32": WIDE.astype(np.float32),
        "bfloat16": np.tile(WIDE, 3).astype(ml_dtypes.bfloat16),
        "integers": np.arange(300_000),
        "truths": np.arange(2 * LEAST_BYTES) % 3 == 0,
        "NaN and -0": np.tile([np.nan, -0.0, -np.nan, np.inf], 100_000),
    }


@pytest.mark.parametrize("name", layouts())
def test_arrays_come_back_bit_by_bit_in_their_layout(name: str) -> None:
    array = layouts()[name]
    kept = Store(None).put(array)
    assert type(kept) is Offloaded
    found = kept.array()
    assert type(found) is np.ndarray
    assert not found.flags.writeable
    assert (found.shape, found.dtype, found.strides) == (array.shape, array.dtype, array.strides)
    assert found.tobytes() == array.tobytes()


def test_gaps_in_the_memory_of_the_owner_itself() -> None:
    memory = bytearray(np.arange(500_000.0))
    array = np.ndarray((250, 1000), np.float64, memory, 0, (16_000, 8))
    found = Store(None).put(array).array()
    np.testing.assert_array_equal(found, array)
    assert found.flags.c_contiguous


class Own(np.ndarray):
    """An array of another type."""


@pytest.mark.parametrize(
    "value",
    [
        1.5,
        np.float64(2.0),
        np.ones(LEAST_BYTES // 8 - 1),
        np.broadcast_to(1.0, (2000, 2000)),
        np.ones(LEAST_BYTES).view(Own),
        np.full(LEAST_BYTES, None),
    ],
    ids=["number", "scalar", "small", "one number", "subclass", "objects"],
)
def test_what_stays_in_memory(value: Any) -> None:
    assert Store(None).put(value) is value


def test_arrays_that_share_memory_share_it_again() -> None:
    store, array = Store(None), WIDE + 1.0
    kept = [store.put(each) for each in (array, array.T, array.reshape(-1))]
    one, *others = [each.array() for each in kept]
    assert all(each.ctypes.data == one.ctypes.data for each in others)
    assert store.put(one[1:]).array().ctypes.data == one[1:].ctypes.data
    assert store.size < 2 * array.nbytes
    array[0, 0] = 7.0
    changed = store.put(array)
    assert (one[0, 0], changed.array()[0, 0]) == (1.0, 7.0)
    assert kept[0].array() is one


def test_memory_that_belongs_to_another_array_now() -> None:
    store = Store(None)
    for n in range(20):
        array = np.full(LEAST_BYTES, n, np.uint8)  # often at the same address
        assert store.put(array).array()[0] == n
    assert store.size <= 2 * (LEAST_BYTES + STEP)


def test_no_copy_is_made_of_what_is_written() -> None:
    store, array = Store(None), np.asfortranarray(np.ones((1000, 4000)))
    tracemalloc.start()
    try:
        kept = store.put(array)
        found = kept.array()
        assert tracemalloc.get_traced_memory()[1] < array.nbytes / 10
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(found, array)


# ---- threads and processes ----------------------------------------------------------------------


def test_threads_put_and_read_at_once() -> None:
    store, wrong = Store(None), []

    def work(seed: int) -> None:
        for n in range(30):
            array = np.full(LEAST_BYTES // 8 + 100 * n, seed * 100.0 + n)
            kept = store.put(array)
            if not np.array_equal(kept.array(), array):
                wrong.append((seed, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_and_its_parent_do_not_write_to_one_file() -> None:
    store = Store(None)
    kept = [store.put(np.full(LEAST_BYTES, n, np.uint8)) for n in range(3)]
    go_read, go_write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.read(go_read, 1)  # the parent has used its space again by now
            own = [each.array()[-1] for each in kept] == [0, 1, 2]
            kept.clear()
            new = [store.put(np.full(LEAST_BYTES, n, np.uint8)) for n in range(50, 54)]
            code = 0 if own and [each.array()[0] for each in new] == [50, 51, 52, 53] else 2
        finally:
            os._exit(code)
    kept[1:] = []
    kept += [store.put(np.full(LEAST_BYTES, n, np.uint8)) for n in range(10, 14)]
    os.write(go_write, b"!")
    _, status = os.waitpid(child, 0)
    os.close(go_read)
    os.close(go_write)
    assert os.waitstatus_to_exitcode(status) == 0
    assert [each.array()[-1] for each in kept] == [0, 10, 11, 12, 13]


# ---- errors -------------------------------------------------------------------------------------


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, number in (("missing", errno.ENOENT), ("file", errno.ENOTDIR)):
        with pytest.raises(OffloadError, match=f"8000000 bytes .* file in .*{name}") as caught:
            Store(str(tmp_path / name)).put(np.ones(1_000_000))
        assert caught.value.errno == number
        assert isinstance(caught.value, OSError)
        assert "gt.CheckpointConfig(offload=...)" in str(caught.value)


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(OffloadError, match="Permission denied"):
        Store(str(tmp_path)).put(np.ones(1_000_000))


def test_file_systems_that_cannot_reserve_space(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    array = np.arange(200_000.0)
    np.testing.assert_array_equal(Store(None).put(array).array(), array)
    monkeypatch.delattr(os, "posix_fallocate")
    np.testing.assert_array_equal(Store(None).put(array).array(), array)


def test_writes_that_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda number, data, at: pwrite(number, data[:777_777], at))
    array = np.arange(500_000.0)
    np.testing.assert_array_equal(Store(None).put(array).array(), array)
    monkeypatch.delattr(os, "pwrite")  # as on Windows
    np.testing.assert_array_equal(Store(None).put(array).array(), array)


@pytest.mark.parametrize("name", ["pwrite", "posix_fallocate"])
def test_a_full_disk_leaves_the_store_as_it_was(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(None)
    kept = store.put(WIDE)
    size = store.size
    function = getattr(os, name)

    def full(*_args: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, name, full)
    for _ in range(3):
        with pytest.raises(OffloadError, match="No space left on device; 2400000 bytes"):
            store.put(WIDE + 1.0)
    monkeypatch.setattr(os, name, function)
    np.testing.assert_array_equal(store.put(WIDE + 1.0).array(), WIDE + 1.0)
    np.testing.assert_array_equal(kept.array(), WIDE)
    assert store.size <= 2 * size


def test_a_map_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Store(None).put(WIDE)

    def refuse(self: ScratchFile, start: int, length: int) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(offload.ScratchFile, "map", refuse)
    with pytest.raises(OffloadError, match=r"Too many open files; .* Raise the limits"):
        kept.array()
