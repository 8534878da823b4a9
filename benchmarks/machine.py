"""What the figures were measured on."""

import importlib.metadata
import os
import platform
from pathlib import Path

import torch

from benchmarks import THREADS

PACKAGES = (
    *("gradtape", "numpy", "scipy", "llvmlite", "optree", "ml_dtypes"),
    *("torch", "jax", "jaxlib", "autograd"),
)


def describe() -> dict[str, str]:
    """Describe processor, system, interpreter and the versions that were compared."""
    blas, pytorch = THREADS, torch.get_num_threads()
    facts = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f} processes in the minute before this run",
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "threads": f"eager benchmarks: {blas} for NumPy's BLAS, {pytorch} for PyTorch",
    }
    return facts | {name: _version(name) for name in PACKAGES}


def _processor() -> str:
    """Return the model of the processor, as Linux names it, with its family and model number."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    lines = info.read_text().split("\n\n")[0].splitlines()
    facts = {key.strip(): value.strip() for key, _, value in (s.partition(":") for s in lines)}
    name = facts.get("model name", platform.machine())
    return f"{name} (family {facts.get('cpu family')}, model {facts.get('model')})"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
