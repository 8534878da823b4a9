"""The equivalents in gradtape of calls of SciPy.

Most functions have SciPy's name and arguments, with the same defaults. Where NumPy has a function
of that name with other defaults, ours has NumPy's; then the equivalent call is given, depending on
the arguments. A test runs them all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

# The arguments of a call by their names in SciPy, as far as they are known.
Given = Mapping[str, Any]


def _cholesky(given: Given) -> str:
    return f"gt.linalg.cholesky(a{'' if given.get('lower') else ', upper=True'})"


def _lstsq(given: Given) -> str:
    cond = given.get("cond")
    return f"gt.linalg.lstsq(a, b, cond={'np.finfo(a.dtype).eps' if cond is None else repr(cond)})"


def _pinv(given: Given) -> str | None:
    if given.get("atol"):
        return None
    rtol = given.get("rtol")
    bound = "max(a.shape[-2:]) * np.finfo(a.dtype).eps" if rtol is None else repr(rtol)
    inverse = f"gt.linalg.pinv(a, rtol={bound})"
    rank = f"gt.linalg.matrix_rank(a, rtol={bound})"
    return f"({inverse}, {rank})" if given.get("return_rank") else inverse


def _qr(given: Given) -> str | None:
    mode = given.get("mode", "full")
    if mode not in ("full", "economic", "r"):
        return None
    pivoting = ", pivoting=True" if given.get("pivoting") else ""
    if mode == "r":
        return f"gt.linalg.qr(a, mode='full'{pivoting})[1:]"
    return f"gt.linalg.qr(a, mode={mode!r}{pivoting})"


def _interpolated(given: Given) -> str | None:
    kind = given.get("kind") or getattr(given.get("self"), "_kind", "linear")
    return "gt.interp(x_new, x, y)" if kind in ("linear", 1) else None


# Functions that have another name or other defaults.
_EQUAL: dict[str, str | Callable[[Given], str | None]] = {
    "scipy.differentiate.derivative": "gt.grad(lambda x: np.sum(f(x)))(x)",
    "scipy.differentiate.hessian": "gt.hessian(f)(x)",
    "scipy.differentiate.jacobian": "gt.jacobian(f)(x)",
    "scipy.integrate.trapezoid": "gt.trapezoid",
    "scipy.interpolate.interp1d": _interpolated,
    "scipy.linalg.cholesky": _cholesky,
    "scipy.linalg.lstsq": _lstsq,
    "scipy.linalg.pinv": _pinv,
    "scipy.linalg.qr": _qr,
}


def counterpart(call: str, method: str = "", given: Given | None = None) -> str | None:
    """The equivalent of a call of SciPy: a function, `gt.linalg.det`, or a whole call.

    Args:
        call: The function of SciPy, with its module.
        method: The method that was called, if it is a class: `__init__`, `__mul__`, …
        given: The arguments of the call, as far as they are known.
    """
    if call in _EQUAL:
        equal = _EQUAL[call]
        return equal if isinstance(equal, str) else equal(given or {})
    if call.startswith("scipy.sparse.") and _is_matrix(call):
        return _of_matrix(call.split(".")[2], method)
    library, _, path = call.partition(".")
    if library != "scipy":
        return None
    # From sys.modules: this package does not import modules built on top of it.
    found: object = sys.modules["gradtape"]
    for part in path.split("."):
        found = getattr(found, part, None)
    return f"gt.{path}" if callable(found) else None


def _is_matrix(call: str) -> bool:
    """Whether a name is that of a sparse matrix class, or of a method of one."""
    module = sys.modules["scipy.sparse"]
    return isinstance(getattr(module, call.split(".")[2], None), type)


def _of_matrix(kind: str, method: str) -> str:
    """The equivalent, for a tensor, of a method of a sparse matrix class."""
    if method == "__init__":
        made = kind[:3] if kind[:3] in ("csr", "csc", "coo") else "coo"
        return f"gt.scipy.sparse.{made}_array"
    # For matrices, as opposed to arrays, * is the matrix product.
    product = ("__mul__", "__rmul__") if kind.endswith("_matrix") else ()
    if method in ("__matmul__", "dot", *product):
        return "gt.scipy.sparse.matmul(a, t), or gt.scipy.sparse.from_scipy(a) @ t"
    if method in ("__mul__", "__rmul__", "multiply"):
        return "gt.scipy.sparse.from_scipy(a).multiply(t)"
    return "gt.scipy.sparse.from_scipy(a), whose operators take tensors"
