"""Kept results on disk: the same gradients in less memory, and nothing left behind."""

from __future__ import annotations

import dataclasses
import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core import offload
from gradtape.core.offload import LEAST_BYTES, Offloaded
from gradtape.errors import ArgumentError, OffloadError
from taped import gradient

S = gt.CheckpointStrategy
CONFIGS = {
    "block": gt.CheckpointConfig(strategy=S.Block, checkpoint_every_n=3, offload=True),
    "pairs": gt.CheckpointConfig(strategy=S.Block, checkpoint_every_n=2, offload=True),
    "every record": gt.CheckpointConfig(strategy=S.Block, checkpoint_every_n=1, offload=True),
    "selective": gt.CheckpointConfig(strategy=S.Selective, offload=True),
    "some": gt.CheckpointConfig(strategy=S.Selective, checkpoint_every_n=3, offload=True),
    "auto": gt.CheckpointConfig(strategy=S.Auto, memory_budget_mb=40, offload=True),
}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
LARGE = np.linspace(0.1, 1.1, 160_000).reshape(400, 400)


# ---- programs on arrays of more than a megabyte --------------------------------------------------


def chain(x: Any) -> Any:
    for n in range(12):
        x = gt.tanh(x * 1.1 + 0.01 * n)
    return gt.sum(x)


def grams(x: Any) -> Any:
    """A product of a matrix and its own transpose is computed in another way than other ones."""
    for _ in range(3):
        h = gt.sin(x)
        turned = h.T
        x = gt.sin((h @ turned) * 0.002) + x
    return gt.sum(x * x)


def views(x: Any) -> Any:
    """Layouts that decide in which order elements are added up."""
    h = gt.exp(x)
    even, turned, back = h[:, ::2], h.T, h[::-1]
    total = gt.sum(gt.cos(even)) + gt.sum(gt.sin(turned), axis=0) @ gt.sum(back * x, axis=1)
    cube = gt.transpose(gt.reshape(h, (20, 20, 400)), (2, 0, 1))
    return total + gt.sum(gt.tanh(cube) * cube) + gt.sum(gt.sqrt(gt.broadcast_to(h[0], (400, 400))))


def writes(x: Any) -> Any:
    buffer = x * 0.0
    for i in range(8):
        buffer[i] = x[i] * gt.sin(x[7 - i])
        if i == 3:
            early = gt.sum(buffer**2)
    view = buffer[1:]
    view[1] = 7.0 * x[0]
    before = gt.sum(gt.exp(view))
    buffer[5:] += x[:1]
    return gt.sum(buffer**3) + gt.sum(view * view) + early + before


def several_results(x: Any) -> Any:
    low, high = gt.split(gt.exp(x), 2)
    q, r = gt.linalg.qr(x + 20 * np.eye(400))
    return gt.sum(low * high) + gt.sum((q * x) @ r)


def of_other_dtypes(x: Any) -> Any:
    z = gt.exp(1j * x) * x
    y = gt.exp(x.astype(gt.float32)) * 2.0
    b = gt.tanh(gt.concatenate([x, x, x, x]).astype(gt.bfloat16)) * 3.0
    return gt.sum(gt.abs(z @ gt.conj(z))) + gt.sum(y * y) + gt.sum(b * b).astype(gt.float64)


@gt.jit
def compiled_step(x: Any, y: Any) -> Any:
    h = gt.tanh(x) * y
    return gt.sum(h), h + x


def compiled(x: Any) -> Any:
    total = 0.0
    for _ in range(3):
        s, x = compiled_step(x, gt.sin(x))
        total = total + s
    return total + gt.sum(x)


def functions_inside(x: Any) -> Any:
    step = gt.checkpoint(lambda h: gt.tanh(gt.sin(h) * 1.3), policy=gt.keep_ops("sin"))
    for _ in range(3):
        x = step(x) + x
    return gt.sum(x)


PROGRAMS = {
    function.__name__: function
    for function in (
        *(chain, grams, views, writes, several_results, of_other_dtypes, compiled),
        functions_inside,
    )
}
each_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def store_of(tape: gt.GradientTape) -> offload.Store:
    found: offload.Store = tape._level().policy.store
    return found


def in_memory(config: gt.CheckpointConfig) -> gt.CheckpointConfig:
    return dataclasses.replace(config, offload=False)


# ---- the same gradients in less memory -----------------------------------------------------------


@each_program
@each_config
def test_no_bit_changes(program: Callable[[Any], Any], config: gt.CheckpointConfig) -> None:
    found = gradient(program, LARGE, config)
    np.testing.assert_array_equal(found, gradient(program, LARGE, in_memory(config)), strict=True)


def test_contexts_and_released_passes() -> None:
    found = []
    for checkpoint in (None, CONFIGS["block"]):
        x = gt.tensor(LARGE, requires_grad=True)
        with gt.GradientContext(checkpoint=checkpoint) as context:
            chain(x).backward()
            context.tape.clear()
            chain(x).backward(release=True)
        found.append(np.asarray(x.grad))
    np.testing.assert_array_equal(found[0], found[1])


def test_second_order() -> None:
    def twice(config: gt.CheckpointConfig | None) -> Any:
        with gt.GradientTape(checkpoint=config) as outer:
            x = outer.watch(LARGE)
            with gt.GradientTape(checkpoint=config) as inner:
                y = inner.watch(x)
                out = grams(y)
            squares = gt.sum(inner.gradient(out, y) ** 2)
        return np.asarray(outer.gradient(squares, x))

    config = CONFIGS["every record"]
    np.testing.assert_array_equal(twice(config), twice(in_memory(config)))


def test_results_are_read_back_as_plain_arrays() -> None:
    tape = gt.GradientTape(checkpoint=CONFIGS["selective"])
    y = gt.sin(tape.watch(LARGE))
    assert type(y.record.out) is Offloaded
    found = y.record.result(None)
    assert type(found) is np.ndarray
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, y.value)
    small = gt.sin(tape.watch(np.ones(LEAST_BYTES // 8 - 1)))
    assert type(small.record.out) is np.ndarray


def test_views_of_leaves_stay_in_memory() -> None:
    tape = gt.GradientTape(checkpoint=CONFIGS["every record"])
    x = tape.watch(LARGE)
    turned = x.T[1:]
    out = gt.sin(turned)
    assert turned.record.result(None).base is not None
    assert store_of(tape).size == 0
    gt.exp(out)
    assert store_of(tape).size > 0


def test_checkpointed_functions_with_a_config() -> None:
    step = gt.checkpoint(chain, policy=CONFIGS["block"])
    np.testing.assert_array_equal(
        gradient(lambda x: step(x) * 2.0, LARGE, None),
        gradient(lambda x: chain(x) * 2.0, LARGE, None),
    )


@pytest.fixture
def traced() -> Iterator[Callable[[], int]]:
    """The bytes of memory that are in use, as NumPy says."""
    gc.collect()
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()


def kept_after(config: gt.CheckpointConfig, traced: Callable[[], int]) -> int:
    tape = gt.GradientTape(checkpoint=config)
    h = x = tape.watch(LARGE)
    before = traced()
    for _ in range(20):
        h = gt.sin(h)
    out = gt.sum(h)
    del h
    used = traced() - before
    tape.gradient(out, x)
    return used


@pytest.mark.parametrize(("name", "kept"), [("selective", 20), ("every record", 20), ("block", 6)])
def test_what_is_kept_takes_no_memory(name: str, kept: int, traced: Callable[[], int]) -> None:
    kept_after(CONFIGS[name], traced)  # fills caches
    assert kept_after(in_memory(CONFIGS[name]), traced) >= kept * LARGE.nbytes
    assert kept_after(CONFIGS[name], traced) < 0.5 * LARGE.nbytes


def test_the_backward_pass_takes_no_memory_for_what_it_reads(traced: Callable[[], int]) -> None:
    tape = gt.GradientTape(checkpoint=CONFIGS["selective"])
    h = x = tape.watch(LARGE)
    for _ in range(20):
        h = gt.sin(h)
    out = gt.sum(h)
    del h
    tracemalloc.reset_peak()
    before = traced()
    tape.gradient(out, x)
    assert tracemalloc.get_traced_memory()[1] - before < 6 * LARGE.nbytes


# ---- space on the disk ---------------------------------------------------------------------------


def test_a_long_loop_on_one_tape_does_not_let_the_file_grow() -> None:
    tape = gt.GradientTape(persistent=True, checkpoint=CONFIGS["every record"])
    sizes = []
    for n in range(200):
        x = tape.watch(LARGE + n)
        out = gt.sum(gt.exp(gt.sin(gt.cos(x))))
        if n % 50 == 0:
            tape.gradient(out, x)
        sizes.append(store_of(tape).size)
    assert sizes[-1] == sizes[2] <= 8 * LARGE.nbytes


def open_files() -> int:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("the system does not list open files")
    return len(os.listdir("/proc/self/fd"))


def test_the_file_goes_with_the_last_result() -> None:
    before = open_files()
    for _ in range(12):
        tape = gt.GradientTape(checkpoint=CONFIGS["block"])
        x = tape.watch(LARGE)
        out = gt.sum(gt.exp(gt.sin(gt.cos(gt.sin(x)))))
        assert open_files() == before + 1
        tape.gradient(out, x)
        del out
        assert open_files() == before


def test_a_context_closes_files() -> None:
    x = gt.tensor(LARGE, requires_grad=True)
    counts = []
    with gt.GradientContext(checkpoint=CONFIGS["block"]) as context:
        for _ in range(12):
            chain(x).backward()
            context.tape.clear()
            counts.append(open_files())
    assert counts[-1] == counts[2]


def test_results_that_are_dropped_and_freed_give_space_back() -> None:
    tape = gt.GradientTape(checkpoint=CONFIGS["selective"])
    y = gt.sin(tape.watch(LARGE))
    store = store_of(tape)
    other = store.put(LARGE + 2.0)
    size = store.size
    y.record.drop()
    y.record.keep(LARGE + 1.0)
    assert type(y.record.out) is Offloaded
    assert store.size == size
    y.record.free()
    more = store.put(LARGE + 3.0)
    assert store.size == size
    assert other.array()[0, 0] + 1.0 == more.array()[0, 0]


# ---- threads, forks, ends ------------------------------------------------------------------------


def in_threads(*work: Callable[[], Any]) -> list[Any]:
    found: list[Any] = [None] * len(work)

    def run(n: int) -> None:
        found[n] = work[n]()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_threads_with_tapes_of_their_own_and_on_one_tape() -> None:
    config = CONFIGS["every record"]
    inputs = [LARGE * (1 + n) for n in range(4)]
    expected = [gradient(grams, x, in_memory(config)) for x in inputs]
    found = in_threads(*[lambda x=x: gradient(grams, x, config) for x in inputs])  # type: ignore[misc]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    tape = gt.GradientTape(persistent=True, checkpoint=config)
    x = tape.watch(inputs[0])
    out = grams(x)
    for each in in_threads(*[lambda: np.asarray(tape.gradient(out, x))] * 4):
        np.testing.assert_array_equal(each, expected[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_differentiates_what_its_parent_recorded() -> None:
    config = CONFIGS["every record"]
    tape = gt.GradientTape(persistent=True, checkpoint=config)
    x = tape.watch(LARGE)
    out = gt.sum(gt.exp(gt.sin(gt.cos(x))))
    expected = np.asarray(tape.gradient(out, x))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            more = gt.sum(gt.exp(gt.sin(gt.cos(x * 2.0))))  # writes to a file of its own
            tape.gradient(more, x)
            code = 0 if np.array_equal(tape.gradient(out, x), expected) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_array_equal(tape.gradient(out, x), expected)


CHILD = """
import sys
import numpy as np
import gradtape as gt

config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Selective, offload=sys.argv[1])
tape = gt.GradientTape(checkpoint=config)
h = tape.watch(np.linspace(0.0, 1.0, 200_000))
for _ in range(10):
    h = gt.sin(h)
assert tape._level().policy.store.size > 10_000_000
print("ready", flush=True)
if sys.argv[2] == "wait":
    sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["wait", "end"])
def test_nothing_is_left_in_the_folder(how: str, tmp_path: Path) -> None:
    if how == "wait" and not hasattr(signal, "SIGKILL"):
        pytest.skip("no SIGKILL on this system")
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CHILD, str(tmp_path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        if how == "wait":
            process.kill()
        assert process.wait(60) == (0 if how == "end" else -signal.SIGKILL)
        assert process.stderr.read() == ""
    assert list(tmp_path.iterdir()) == []


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pwrite", "posix_fallocate"])
@pytest.mark.parametrize("program", [chain, grams, writes, several_results])
def test_a_full_disk_leaves_what_was_recorded(
    name: str, program: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever write fails, what was recorded before gives the same gradient."""
    function, calls = getattr(os, name), 0
    config = CONFIGS["every record"]

    def first_steps(x: Any) -> Any:
        return gt.sum(gt.exp(gt.sin(x)) * gt.cos(x))

    expected = gradient(first_steps, LARGE, None)
    failed = 0
    for failing in (1, 2, 4, 7, 12):
        tape = gt.GradientTape(persistent=True, checkpoint=config)
        x = tape.watch(LARGE)
        out = first_steps(x)
        calls = 0

        def counted(*args: Any, failing: int = failing) -> Any:
            nonlocal calls
            calls += 1
            if calls >= failing:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*args)

        monkeypatch.setattr(os, name, counted)
        try:
            program(x)
        except OffloadError:
            failed += 1
        monkeypatch.setattr(os, name, function)
        np.testing.assert_array_equal(tape.gradient(out, x), expected)
        np.testing.assert_array_equal(tape.gradient(program(x), x), gradient(program, LARGE, None))
    assert failed >= 2


@pytest.mark.parametrize("name", ["every record", "some"])
def test_an_assignment_that_cannot_be_recorded_is_not_done(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = dataclasses.replace(CONFIGS[name], checkpoint_every_n=2)
    tape = gt.GradientTape(persistent=True, checkpoint=config)
    x = tape.watch(LARGE)
    monkeypatch.setattr(offload, "LEAST_BYTES", 1)
    part = x[0] * 2.0
    buffer = x * 1.0
    failed = False

    def full(*_args: Any) -> Any:
        nonlocal failed
        failed = True
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for n in range(4):
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", full)
            before = np.array(buffer.value)
            failed = False
            try:
                buffer[n] = part
            except OffloadError:
                np.testing.assert_array_equal(buffer.value, before)
        if failed:
            buffer[n] = part
    expected = np.ones_like(LARGE)
    expected[:4] = 0.0
    expected[0] = 8.0
    np.testing.assert_array_equal(tape.gradient(gt.sum(buffer), x), expected)


def test_a_small_disk(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "gradtape-test", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("this user may not mount file systems")
    try:
        config = dataclasses.replace(CONFIGS["selective"], offload=tmp_path)
        tape = gt.GradientTape(persistent=True, checkpoint=config)
        h = x = tape.watch(LARGE)
        for _ in range(6):
            h = gt.sin(h)
        with pytest.raises(OffloadError, match="No space left on device; 1280000 bytes"):
            gt.sin(h)
        found = tape.gradient(gt.sum(h), x)
        value, slope = LARGE, np.ones_like(LARGE)
        for _ in range(6):
            value, slope = np.sin(value), slope * np.cos(value)
        np.testing.assert_allclose(found, slope)
        del tape, h, x, found
        gc.collect()
        assert os.statvfs(tmp_path).f_bfree * os.statvfs(tmp_path).f_frsize > 7_000_000
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"strategy": S.Block, "offload": 3}, "got an int for offload, expected True, False or"),
        ({"strategy": S.Block, "offload": None}, "got a NoneType for offload"),
        ({"strategy": S.Block, "offload": b"/tmp"}, "got a bytes for offload"),
        ({"strategy": S.Block, "offload": ""}, "got '' for offload"),
        ({"offload": True}, "got offload=True without a strategy"),
    ],
)
def test_bad_options(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        gt.CheckpointConfig(**options)


def test_a_folder_is_where_the_program_was_when_the_tape_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "not there").mkdir()
    config = gt.CheckpointConfig(strategy=S.Selective, offload="not there")
    (tmp_path / "not there").rmdir()
    tape = gt.GradientTape(checkpoint=config)
    x = tape.watch(LARGE)
    monkeypatch.chdir("/")
    with pytest.raises(OffloadError, match=f"file in {tmp_path}.not there"):
        gt.sin(x)
