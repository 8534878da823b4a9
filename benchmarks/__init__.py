"""Benchmarks of gradtape against NumPy, PyTorch, JAX and HIPS autograd: `python -m benchmarks`."""

import os

THREADS = int(os.environ.get("BENCHMARK_THREADS", "1"))
"""Threads of every side in this process.

One in the process that runs the eager benchmarks: their arrays are small, more threads only make
PyTorch slower there. The workers of the compiled benchmarks are told how many they have.
"""

# Read by the BLAS libraries when NumPy and PyTorch are first imported, hence set here.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = str(THREADS)
