"""Calls of whole functions while modes are in force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import tree
from gradtape.core.state import adopted, values_read
from gradtape.core.tensor import Tensor
from gradtape.errors import GradtapeError


def call_adopted(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function with arrays as the modes in force see them.

    What it computes from an array before it calls an op would be computed once and for all while a
    function is traced. So a trace makes inputs of the arrays beforehand. Where that cannot be
    (`repeats` of `np.repeat` decide on a shape), the function gets the array, and the trace is told
    that it depends on the elements.
    """
    leaves, structure = tree.flatten((tuple(args), kwargs))
    arrays = [n for n, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.size]
    if not arrays or not any(isinstance(leaf, Tensor) for leaf in leaves):
        return function(*args, **kwargs)
    floats = [n for n in arrays if leaves[n].dtype.kind in "fc"]
    for lifted in (arrays, floats) if len(floats) < len(arrays) else (arrays,):
        values = [adopted(leaf) if n in lifted else leaf for n, leaf in enumerate(leaves)]
        before = [values[n].record for n in lifted if isinstance(values[n], Tensor)]
        full, keywords = tree.unflatten(structure, values)
        try:
            out = function(*full, **keywords)
        except (GradtapeError, TypeError, ValueError):
            continue
        if [values[n].record for n in lifted if isinstance(values[n], Tensor)] == before:
            break  # else it has written to them: it is to write to the arrays, or to refuse that
    else:
        lifted, out = [], function(*args, **kwargs)
    for n in set(arrays).difference(lifted):
        values_read(leaves[n])
    return out
