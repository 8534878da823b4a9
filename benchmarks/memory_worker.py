"""Measures the memory or the time of programs: `python -m benchmarks.memory_worker REQUEST`.

The request is JSON: a side, a program, its size, how it is run, and what to measure. So is the
answer. Every measurement of memory is a process of its own.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import importlib
import json
import resource
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import THREADS
from benchmarks.harness import CLOCK
from benchmarks.loop_memory_worker import peak_of
from benchmarks.memory_cases import Cases
from benchmarks.memory_program import Program


def memory(program: Program, warm_up: int) -> dict[str, Any]:
    """Measure one step: what the system sees, then what the allocator does.

    Memory that either side keeps for later is given back before, and gradients are dropped, so
    that the step has to ask for all it needs.

    Args:
        program: What is measured.
        warm_up: Steps before: libraries load code and set memory aside at first.
    """
    for _ in range(warm_up):
        program.step()
    results: list[Any] = []
    _trim(program)
    resident = peak_of(lambda: results.append(program.step()))
    facts = {"digest": digest(results[0]), "sums": [float(np.abs(g).sum()) for g in results[0]]}
    results.clear()
    _trim(program)
    allocated = program.allocated(program.step)[0]
    saved = program.allocated(program.forward)[1]
    return {"resident": resident, "allocated": allocated, "saved": saved, **facts}


def _trim(program: Program) -> None:
    gc.collect()
    program.tidy()
    ctypes.CDLL(None).malloc_trim(0)


def digest(gradients: Sequence[np.ndarray]) -> str:
    """Return a hash of all bits of some arrays."""
    found = hashlib.sha256()
    for gradient in gradients:
        found.update(np.ascontiguousarray(gradient))
    return found.hexdigest()


def times(programs: Sequence[Program], rounds: int) -> dict[str, Any]:
    """Time steps of several programs in turns, after one step of each.

    Returns:
        For each program its processor times: all of it, and what was not spent in the system.
    """
    found: list[dict[str, list[float]]] = [{"all": [], "own": []} for _ in programs]
    for program in programs:
        program.step()
    order = list(zip(programs, found, strict=True))
    for _ in range(rounds):
        for program, spent in order:
            gc.collect()
            own, begun = _own_seconds(), CLOCK()
            program.step()
            spent["all"].append(CLOCK() - begun)
            spent["own"].append(_own_seconds() - own)
        order.reverse()
    return {"seconds": found}


def _own_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request says."""
    side = importlib.import_module(f"benchmarks.memory_{request['side']}")
    side.use_threads(THREADS)
    case = getattr(Cases.of(quick=request["quick"]), request["case"])
    programs = [side.program(case, way, budget) for way, budget in request["ways"]]
    if request["do"] == "times":
        return times(programs, request["rounds"])
    (program,) = programs
    return memory(program, request["warm_up"])


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(sys.argv[1]))))
