"""The process of one side of a compiled benchmark: `python -m benchmarks.compiled_worker SIDE`."""

import importlib
from typing import Any

from benchmarks.compiled_cases import CASES
from benchmarks.compiled_program import Clock, Program, UnavailableError, check
from benchmarks.worker import answer_requests

# Key of a side -> module and function that make its programs; the modules are heavy.
SIDES = {
    "gradtape": ("benchmarks.compiled_gradtape", "program"),
    "numpy": ("benchmarks.compiled_gradtape", "numpy_program"),
    "jax": ("benchmarks.compiled_jax", "program"),
    "jax-sync": ("benchmarks.compiled_jax", "synchronous_program"),
    "jax-numpy": ("benchmarks.compiled_jax", "numpy_program"),
    "torch": ("benchmarks.compiled_torch", "program"),
    "torch-compile": ("benchmarks.compiled_torch", "compiled_program"),
    "torch-lstm": ("benchmarks.compiled_torch", "lstm_program"),
    "c": ("benchmarks.compiled_c", "program"),
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
        return {"batches": self._clock.turn(seconds, least)}

    def first(self, case: str) -> dict[str, Any]:
        """Time what the first call of a case takes longer than a later one, then check it."""
        program = self._make(case)
        first, later = program.first_calls()
        self._check(case, program)
        return {"seconds": first - later}

    def _make(self, case: str) -> Program:
        return getattr(self._module, self._maker)(CASES[case].kind, CASES[case].arrays())

    def _check(self, name: str, program: Program) -> None:
        from benchmarks.compiled_gradtape import reference

        case = CASES[name]
        exact = reference(case.kind, case.arrays())
        check(f"{self._key}, {name}", program.results(), exact, case.rtol)


if __name__ == "__main__":
    answer_requests(Side)
