"""Asking a fresh process for the memory or the time of a program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.harness import Settings
from benchmarks.worker import answer_of

Side = Literal["gradtape", "torch"]
Way = tuple[str, int | None]
"""How a side runs a program, and the bytes it may keep."""
PLAIN: dict[Side, Way] = {"gradtape": ("tape", None), "torch": ("plain", None)}
MOST_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Memory:
    """One step: bytes at the peak as system and allocator see them, and what was computed.

    Attributes:
        resident: By how much the peak of resident memory exceeds what was resident before.
        allocated: The same of what is allocated.
        saved: What is allocated between forward and backward pass.
        digest: A hash of the gradients' bits.
        sums: For each gradient the sum of its magnitudes.
    """

    resident: int
    allocated: int
    saved: int
    digest: str
    sums: list[float]


@dataclass(frozen=True, slots=True)
class Seconds:
    """Processor times of steps, one figure per round.

    Attributes:
        all: All of it. How long the system takes for fresh pages differs by a factor of forty,
            depending on what the machine did before.
        own: What was not spent in the system.
    """

    all: list[float]
    own: list[float]


def is_quick(settings: Settings) -> bool:
    """Return whether small programs are enough."""
    return settings.rounds <= Settings.quick().rounds


def memory(side: Side, case: str, way: Way, settings: Settings, *, warm_up: int = 2) -> Memory:
    """Measure the memory of one step of a program."""
    request = {"do": "memory", "warm_up": warm_up, "quick": is_quick(settings)}
    return Memory(**_ask({**request, "side": side, "case": case, "ways": [way]}))


def seconds(side: Side, case: str, ways: Sequence[Way], settings: Settings) -> list[Seconds]:
    """Time the steps of a program, run in several ways that take turns in one process."""
    request = {"do": "times", "rounds": min(settings.rounds, MOST_ROUNDS)}
    request |= {"quick": is_quick(settings), "side": side, "case": case, "ways": list(ways)}
    return [Seconds(**found) for found in _ask(request)["seconds"]]


def _ask(request: dict[str, Any]) -> Any:
    return answer_of("benchmarks.memory_worker", json.dumps(request))
