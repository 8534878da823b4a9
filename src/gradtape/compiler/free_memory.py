"""Checks that there is memory for large arrays, before they are made.

Linux promises more memory than it has, and ends the process that takes it at its word. Compiled
code knows how much it is going to write to, so it can raise an error instead. The system is asked
only if it is a lot: the answer takes up to some milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

# Less than this, in bytes, is taken without asking.
NOTICED = 1 << 30

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def is_noticed(nbytes: int) -> bool:
    """Whether this many bytes are worth a check before they are taken."""
    return nbytes >= NOTICED


def require(nbytes: int, what: str) -> None:
    """Raise if this many bytes are neither free nor easily freed.

    Args:
        nbytes: The bytes that are going to be written to.
        what: Their purpose, for the error.

    Raises:
        MemoryError: There are fewer.
    """
    if not is_noticed(nbytes):
        return
    free = free_bytes()
    if free is not None and nbytes > free:
        raise MemoryError(
            f"jit: got {what} of {_in_words(nbytes)}, expected at most the {_in_words(free)} that "
            "are free; try smaller arrays, or call it on parts of them"
        )


def free_bytes(root: Path = Path("/")) -> int | None:
    """The bytes this process can still write to; None if the system does not say.

    Files cached in memory count as free, and so does room in swap files. The limits of the
    process's control groups apply too: a container has less than its machine.

    Args:
        root: The root of the system's files.
    """
    counts = _numbers(root / "proc/meminfo")
    available = counts.get("MemAvailable:")
    if available is None:
        return None
    swap = 1024 * counts.get("SwapFree:", 0)
    return max(0, min(1024 * available + swap, *_allowed(root, swap)))


def _allowed(root: Path, swap: int) -> Iterator[int]:
    """The bytes that each control group of the process still allows."""
    yield 1 << 62
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    mounted = root / "sys/fs/cgroup"
    for line in lines:
        number, controllers, name = line.split(":", 2)
        if number == "0" and not controllers:
            for group in _up_from(mounted, name):
                yield from _left_in(group, swap, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            for group in _up_from(mounted / "memory", name):
                files = ("memory.limit_in_bytes", "memory.usage_in_bytes")
                yield from _left_in(group, swap, *files, prefix="total_")


def _up_from(mounted: Path, name: str) -> Iterator[Path]:
    """A group and its parents; those outside a container are not visible from inside."""
    inside = PurePosixPath(name).relative_to("/") if name.startswith("/") else PurePosixPath()
    if ".." not in inside.parts:
        yield from (mounted / part for part in (inside, *inside.parents))


def _left_in(group: Path, swap: int, limit: str, usage: str, prefix: str = "") -> Iterator[int]:
    """The bytes that a group still allows, given the names of its files and numbers."""
    most, used = _number(group / limit), _number(group / usage)
    if most is None or used is None:
        return
    most_swap, swapped = (_number(group / f"memory.swap.{name}") for name in ("max", "current"))
    if most_swap is not None and swapped is not None:
        swap = min(swap, most_swap - swapped)
    counts = _numbers(group / "memory.stat")
    cached = sum(counts.get(f"{prefix}{kind}_file", 0) for kind in ("inactive", "active"))
    yield most - used + cached + swap


def _number(file: Path) -> int | None:
    """The number in a file; None if there is no such file, or no number in it."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _numbers(file: Path) -> dict[str, int]:
    """The numbers of a file with a name and a number in each line."""
    try:
        lines = [line.split() for line in file.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _in_words(nbytes: int) -> str:
    """A number of bytes in a suitable unit."""
    unit = min(max(nbytes.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    return f"{nbytes / (1 << 10 * unit):.4g} {_UNITS[unit]}"
