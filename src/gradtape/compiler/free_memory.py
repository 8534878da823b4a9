"""Whether there is memory for large arrays, asked before they are made.

Linux promises more memory than it has, and ends the process that takes it at its word. Compiled
code knows how much it is going to write to, so it can raise an error instead. The system is asked
only where that is a lot: it takes up to some milliseconds to answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

# In bytes; less than this is taken without asking.
NOTICED = 1 << 30

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def is_noticed(nbytes: int) -> bool:
    """Whether so many bytes are asked for before they are taken."""
    return nbytes >= NOTICED


def require(nbytes: int, what: str) -> None:
    """Raise if so many bytes are neither free nor easily made free.

    Args:
        nbytes: How many are going to be written to.
        what: For what, as the error says it.

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
    """How many bytes this process can still write to; None if the system does not say.

    Files that are cached in memory count as free, and so does room in swap files. What the control
    groups of the process allow is the most there is: a container has less than its machine.

    Args:
        root: Where the system's files are.
    """
    counts = _numbers(root / "proc/meminfo")
    available = counts.get("MemAvailable:")
    if available is None:
        return None
    swap = 1024 * counts.get("SwapFree:", 0)
    return max(0, min(1024 * available + swap, *_allowed(root, swap)))


def _allowed(root: Path, swap: int) -> Iterator[int]:
    """What each of the control groups that the process is in allows besides what it has."""
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
                yield from _left_in_group(group, swap)
        elif "memory" in controllers.split(","):
            for group in _up_from(mounted / "memory", name):
                yield from _left_in_old_group(group, swap)


def _up_from(mounted: Path, name: str) -> Iterator[Path]:
    """A group and all that it is part of; those outside of a container are not seen from inside."""
    inside = PurePosixPath(name).relative_to("/") if name.startswith("/") else PurePosixPath()
    if ".." not in inside.parts:
        yield from (mounted / part for part in (inside, *inside.parents))


def _left_in_group(group: Path, swap: int) -> Iterator[int]:
    limit, used = _number(group / "memory.max"), _number(group / "memory.current")
    if limit is None or used is None:
        return
    most, swapped = _number(group / "memory.swap.max"), _number(group / "memory.swap.current")
    if most is not None and swapped is not None:
        swap = min(swap, most - swapped)
    counts = _numbers(group / "memory.stat")
    cached = counts.get("inactive_file", 0) + counts.get("active_file", 0)
    yield limit - used + cached + swap


def _left_in_old_group(group: Path, swap: int) -> Iterator[int]:
    limit = _number(group / "memory.limit_in_bytes")
    used = _number(group / "memory.usage_in_bytes")
    if limit is None or used is None:
        return
    counts = _numbers(group / "memory.stat")
    cached = counts.get("total_inactive_file", 0) + counts.get("total_active_file", 0)
    yield limit - used + cached + swap


def _number(file: Path) -> int | None:
    """The number in a file; None if there is no such file, or another word in it."""
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
    """A number of bytes in the unit that suits it."""
    unit = min(max(nbytes.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    return f"{nbytes / (1 << 10 * unit):.4g} {_UNITS[unit]}"
