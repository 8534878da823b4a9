"""Benchmarks of gradtape against NumPy, PyTorch and HIPS autograd: `python -m benchmarks`."""

import os

THREADS = 1
"""Threads of every side. The arrays are small: more threads only make PyTorch slower here."""

# Read by the BLAS libraries when NumPy and PyTorch are first imported, hence set here.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = str(THREADS)
