"""The process of one side of a compiled benchmark: `python -m benchmarks.compiled_worker SIDE`.

Requests come as lines of JSON on standard input, each is answered by one on standard output; the
process ends with its input. It keeps to as many cores as it has threads, because that is what some
libraries take their number of threads from.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
from typing import Any, TextIO

from benchmarks import THREADS
from benchmarks.compiled_cases import CASES
from benchmarks.compiled_program import Clock, Program, UnavailableError, check

PR_SET_PDEATHSIG = 1  # from linux/prctl.h

# Key of a side -> module and function that make its programs; the modules are heavy.
SIDES = {
    "gradtape": ("benchmarks.compiled_gradtape", "program"),
    "numpy": ("benchmarks.compiled_gradtape", "numpy_program"),
    "jax": ("benchmarks.compiled_jax", "program"),
    "jax-sync": ("benchmarks.compiled_jax", "synchronous_program"),
    "jax-numpy": ("benchmarks.compiled_jax", "numpy_program"),
    "torch": ("benchmarks.compiled_torch", "program"),
    "torch-compile": ("benchmarks.compiled_torch", "compiled_program"),
}


class Side:
    """Answers the requests of one side; one program is in hand at a time."""

    def __init__(self, key: str) -> None:
        module, self._maker = SIDES[key]
        try:
            self._module = importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise UnavailableError(f"{error.name} is not installed") from None
        self._key = key
        self._program: Program | None = None
        self._clock: Clock | None = None

    def prepare(self, case: str) -> dict[str, Any]:
        """Make the program of a case and check what it computes."""
        self._program = self._clock = None  # gives the memory of the last one back
        program = self._make(case)
        self._check(case, program)
        self._program = program
        return {}

    def turn(self, seconds: float, least: int) -> dict[str, Any]:
        """Time the program that was prepared; the first time finds out how long a call takes."""
        if self._clock is None:
            assert self._program is not None
            self._clock = Clock(self._program)
        return {"seconds": self._clock.turn(seconds, least)}

    def first(self, case: str) -> dict[str, Any]:
        """Time what the first call of a case takes longer than the second, then check it."""
        program = self._make(case)
        first, second = program.first_calls()
        self._check(case, program)
        return {"seconds": first - second}

    def _make(self, case: str) -> Program:
        return getattr(self._module, self._maker)(CASES[case].kind, CASES[case].arrays())

    def _check(self, name: str, program: Program) -> None:
        from benchmarks.compiled_gradtape import reference

        case = CASES[name]
        exact = reference(case.kind, case.arrays())
        check(f"{self._key}, {name}", program.results(), exact, case.rtol)


def main() -> None:
    """Bind the process to its cores and answer requests until there are none."""
    # Stopped between requests, it would outlive a parent that was killed.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-THREADS:])
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    side: Side | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if side is None:
                side = Side(sys.argv[1])
            answer = getattr(side, request.pop("do"))(**request)
        except UnavailableError as error:
            answer = {"unavailable": str(error)}
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        _send(answers, answer)


def _send(stream: TextIO, answer: dict[str, Any]) -> None:
    stream.write(json.dumps(answer) + "\n")
    stream.flush()


if __name__ == "__main__":
    main()
