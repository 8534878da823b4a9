"""The equivalents in gradtape of calls of SciPy.

Functions of `gt.scipy` take the arguments of SciPy's, with the same defaults. A test calls each.
"""

from __future__ import annotations

import sys

# Functions that are something else here.
_ELSEWHERE = {
    "scipy.differentiate.derivative": "gt.grad(lambda x: np.sum(f(x)))(x)",
    "scipy.differentiate.hessian": "gt.hessian(f)(x)",
    "scipy.differentiate.jacobian": "gt.jacobian(f)(x)",
}


def counterpart(call: str, method: str = "") -> str | None:
    """The equivalent of a call of SciPy: a function, `gt.scipy.linalg.det`, or a whole call.

    Args:
        call: The function of SciPy, with its module.
        method: The method that was called, if it is a class: `__init__`, `__mul__`, …
    """
    if call.startswith("scipy.sparse.") and _is_matrix(call):
        return _of_matrix(call.split(".")[2], method)
    library, _, path = call.partition(".")
    if library != "scipy":
        return None
    # From sys.modules: this package does not import modules built on top of it.
    ours: object = sys.modules["gradtape"].scipy
    theirs: object = sys.modules["scipy"]
    for part in path.split("."):
        ours, theirs = getattr(ours, part, None), getattr(theirs, part, None)
        if hasattr(ours, "refuses_tensors"):
            return None
    # What has no form for tensors is SciPy's own.
    return f"gt.{call}" if callable(ours) and ours != theirs else _ELSEWHERE.get(call)


def _is_matrix(call: str) -> bool:
    """Whether a name is that of a sparse matrix class, or of a method of one."""
    module = sys.modules["scipy.sparse"]
    return isinstance(getattr(module, call.split(".")[2], None), type)


def _of_matrix(kind: str, method: str) -> str:
    """The equivalent, for a tensor, of a method of a sparse matrix class."""
    if method == "__init__":
        made = kind[:3] if kind[:3] in ("csr", "csc", "coo") else "coo"
        family = "matrix" if kind.endswith("_matrix") else "array"
        return f"gt.scipy.sparse.{made}_{family}"
    # For matrices, as opposed to arrays, * is the matrix product.
    product = ("__mul__", "__rmul__") if kind.endswith("_matrix") else ()
    if method in ("__matmul__", "dot", *product):
        return "gt.scipy.sparse.matmul(a, t)"
    if method in ("__mul__", "__rmul__", "multiply"):
        return "t * a, or gt.scipy.sparse.from_scipy(a).multiply(t)"
    return "gt.scipy.sparse.from_scipy(a), whose operators take tensors"
