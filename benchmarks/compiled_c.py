"""C's side of the compiled benchmarks: loops with their gradients written out, in one thread."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import loop_functions
from benchmarks.compiled_cases import Arrays
from benchmarks.compiled_program import Program, UnavailableError

SOURCE = Path(__file__).with_name("newton.c")
OPTIONS = ("-O3", "-march=native", "-shared", "-fPIC")
CONSTANTS = ("TOLERANCE", "MOST_ITERATIONS", "ECCENTRICITY")
FUNCTIONS = {"cube roots": "cube_roots", "anomalies": "anomalies"}


def program(kind: str, arrays: Arrays) -> Program:
    """Return the program of a kind: the sum of the roots, and its gradient as a new array."""
    function = getattr(_library(), FUNCTIONS[kind])
    function.argtypes = ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p
    function.restype = ctypes.c_double
    values = np.ascontiguousarray(arrays["values"])
    address = values.ctypes.data

    def f() -> tuple[float, np.ndarray]:
        gradient = np.empty_like(values)
        return function(values.size, address, gradient.ctypes.data), gradient

    return Program("f()", {"f": f})


def _library() -> ctypes.CDLL:
    """Compile the source with the system's compiler and load it."""
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        raise UnavailableError(f"a C compiler is needed, {compiler} was not found")
    constants = [f"-D{name}={getattr(loop_functions, name)!r}" for name in CONSTANTS]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "newton.so")
        command = [compiler, *OPTIONS, *constants, "-o", str(library), str(SOURCE), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"{compiler} does not compile {SOURCE.name}: {done.stderr}")
        return ctypes.CDLL(str(library))
