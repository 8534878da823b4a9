"""SciPy's sparse matrices on the left of an operator: `a @ t` gives the operator to the tensor.

Such a matrix asks the other operand for an array before it multiplies. If it finds an object that
is no array, it returns NotImplemented, and Python asks the tensor next. So a tensor answers just
these functions with an object that holds itself; everybody else gets its value, or an error where
its history would be lost.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

import numpy as np

_MODULES = ("scipy.sparse._base", "scipy.sparse._coo")
# Functions that leave objects to the other operand, with the operators that call them.
_ASKING = {
    "_matmul_dispatch": ("__matmul__", "__mul__"),  # the latter of matrices, as opposed to arrays
    "_divide": ("__truediv__",),
}


def leaves_operator(frame: FrameType) -> bool:
    """Whether a frame runs an operator of SciPy's that leaves objects to the other operand."""
    operators = _ASKING.get(frame.f_code.co_name)
    if operators is None or frame.f_globals.get("__name__") not in _MODULES:
        return False
    caller = frame.f_back
    return caller is not None and caller.f_code.co_name in operators


def as_object(operand: Any) -> Any:
    """The array in which such an operator finds an object."""
    holder = np.empty(1, object)
    holder[0] = operand
    return holder.reshape(())
