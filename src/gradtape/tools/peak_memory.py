"""The peak of resident memory, as the operating system counts it.

Native libraries allocate where Python does not see it, so the system is asked. Linux keeps the peak
of a process and forgets it on demand; elsewhere there is no figure, and nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PEAK_RESET = Path("/proc/self/clear_refs")
STATUS = Path("/proc/self/status")


@dataclass(slots=True)
class _Open:
    """A measurement that has begun: resident bytes then, and the peak seen so far."""

    before: int
    peak: int


class PeakMeter:
    """Measures by how much resident memory rises at its peak, also in measurements that overlap.

    Figures are of the whole process, all threads included. Pages that were resident before and are
    used again do not count; in a process that has freed much memory, figures are too low.
    """

    def __init__(self) -> None:
        self._open: list[_Open] = []

    def begin(self) -> _Open | None:
        """Begin a measurement; None if this system does not offer one."""
        before = self._resident()
        if before is None:
            return None
        try:
            PEAK_RESET.write_text("5")  # the peak so far is forgotten: proc(5)
        except OSError:
            return None
        self._open.append(_Open(before, before))
        return self._open[-1]

    def end(self, begun: _Open | None) -> int | None:
        """End a measurement: the rise in bytes, None if there is no figure."""
        if begun is None:
            return None
        self._resident()
        self._open = [other for other in self._open if other is not begun]
        return begun.peak - begun.before

    def _resident(self) -> int | None:
        """Resident bytes; the peak since the last reset is entered where it is waited for."""
        found = resident_and_peak()
        if found is None:
            return None
        resident, peak = found
        for begun in self._open:
            begun.peak = max(begun.peak, peak)
        return resident


def resident_and_peak() -> tuple[int, int] | None:
    """Resident bytes now and at the peak; None where the system does not tell."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    try:
        resident, peak = (1024 * int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM"))
    except (KeyError, ValueError, IndexError):
        return None
    return resident, peak
