"""Memory that compiled functions ask for before they take it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler import free_memory

MEBI = 1 << 20


def system(root: Path, files: dict[str, str]) -> Path:
    """A directory with files as a system would show them."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def meminfo(available: int, swap: int = 0) -> dict[str, str]:
    text = f"MemTotal: 999999 kB\nMemAvailable: {available} kB\nSwapFree: {swap} kB\nHugePages: 0\n"
    return {"proc/meminfo": text}


NEW = {
    "proc/self/cgroup": "0::/jobs/mine\n",
    "sys/fs/cgroup/jobs/mine/memory.max": "max\n",
    "sys/fs/cgroup/jobs/mine/memory.current": "300000\n",
    "sys/fs/cgroup/jobs/memory.max": "1000000\n",
    "sys/fs/cgroup/jobs/memory.current": "400000\n",
    "sys/fs/cgroup/jobs/memory.stat": "anon 123\ninactive_file 20000\nactive_file 1000\n",
}
OLD = {
    "proc/self/cgroup": "5:cpu:/\n4:cpuset,memory:/box\n1:name=systemd:/a:b\n0::/\n",
    "sys/fs/cgroup/memory/box/memory.limit_in_bytes": "500000\n",
    "sys/fs/cgroup/memory/box/memory.usage_in_bytes": "400000\n",
    "sys/fs/cgroup/memory/box/memory.stat": "inactive_file 7\ntotal_inactive_file 5000\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "400000\n",
}


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, None),
        ({"proc/meminfo": "MemTotal: 5 kB\n"}, None),
        (meminfo(1000), 1000 << 10),
        (meminfo(1000, swap=24), 1024 << 10),
        (meminfo(1000) | NEW, 1_000_000 - 400_000 + 21_000),
        (meminfo(100) | NEW, 100 << 10),
        (meminfo(100_000, swap=1) | NEW, 621_000 + 1024),
        (
            meminfo(100_000, swap=1)
            | NEW
            | {
                "sys/fs/cgroup/jobs/memory.swap.max": "100\n",
                "sys/fs/cgroup/jobs/memory.swap.current": "60\n",
            },
            621_000 + 40,
        ),
        (meminfo(1000) | NEW | {"sys/fs/cgroup/jobs/memory.current": "1100000\n"}, 0),
        (meminfo(1000) | {"proc/self/cgroup": "0::/../elsewhere\n"}, 1000 << 10),
        (meminfo(1000) | OLD, 105_000),
    ],
)
def test_what_is_free(tmp_path: Path, files: dict[str, str], free: int | None) -> None:
    assert free_memory.free_bytes(system(tmp_path, files)) == free


def test_what_is_free_on_this_machine() -> None:
    free = free_memory.free_bytes()
    assert free is None or 0 < free < 1 << 50


def test_nothing_is_asked_for_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 0)
    free_memory.require(free_memory.NOTICED - 1, "an array")
    with pytest.raises(MemoryError, match=r"got an array of 1 GiB, expected at most the 0 bytes"):
        free_memory.require(free_memory.NOTICED, "an array")


def test_what_is_unknown_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "free_bytes", lambda: None)
    free_memory.require(1 << 60, "an array")


def spread(x: Any) -> Any:
    return np.broadcast_to(x, (4, MEBI // 8))


@pytest.mark.parametrize(
    ("function", "argument", "what"),
    [
        (lambda x: spread(x) * 2.0, np.float64(3), "results and intermediate values of 4 MiB"),
        # The differences are read after the largest of them is known.
        (
            lambda x: np.sum((y := np.cumsum(spread(x), axis=1)) - np.max(y)),
            np.float64(3),
            r"results and intermediate values of 4\S* MiB",
        ),
        (lambda x: np.fft.fft(x)[0], np.ones(MEBI // 8), "a result of fft of 2 MiB"),
        (np.sum, spread(1.0), "a copy of an argument of 4 MiB"),
    ],
    ids=["result", "temporary", "eager", "argument"],
)
def test_no_memory_is_taken_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], argument: Any, what: str
) -> None:
    wanted = function(argument)
    monkeypatch.setattr(free_memory, "NOTICED", MEBI)
    monkeypatch.setattr(free_memory, "free_bytes", lambda: MEBI)
    compiled = gt.jit(function)
    for _ in range(3):  # of which the last ones would use an entry of their own
        with pytest.raises(MemoryError, match=what):
            compiled(argument)
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 64 * MEBI)
    for _ in range(3):
        np.testing.assert_allclose(compiled(argument), wanted)


def test_what_was_taken_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "NOTICED", MEBI)
    asked: list[int] = []
    monkeypatch.setattr(free_memory, "require", lambda nbytes, what: asked.append(nbytes))

    def function(x: Any) -> Any:
        return (y := np.cumsum(spread(x), axis=1)) - np.max(y)

    compiled = gt.jit(function)
    for _ in range(3):
        compiled(np.float64(3))
    assert asked[0] >= 8 * MEBI
    assert asked[1:] == [4 * MEBI] * 2
