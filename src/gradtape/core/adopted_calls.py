"""Calls of whole functions while modes are in force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.state import adopted, values_read
from gradtape.core.tensor import Tensor
from gradtape.errors import GradtapeError


def call_adopted(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function with arrays as the modes in force see them.

    Anything the function computes from an array before it calls an op would be baked in when a
    function is traced, so a trace first turns the arrays into inputs. Where that is impossible
    (`repeats` of `np.repeat` decides a shape), the function gets the array itself, and the trace
    is told that it depends on the elements.
    """
    # A function may write into an array of objects, so it has to get that array.
    leaves, structure = containers.flatten((tuple(args), kwargs), join=False)
    arrays = [n for n, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.size]
    if not arrays or not any(isinstance(leaf, Tensor) for leaf in leaves):
        return function(*args, **kwargs)
    floats = [n for n in arrays if leaves[n].dtype.kind in "fc"]
    for lifted in (arrays, floats) if len(floats) < len(arrays) else (arrays,):
        values = [adopted(leaf) if n in lifted else leaf for n, leaf in enumerate(leaves)]
        before = [values[n].record for n in lifted if isinstance(values[n], Tensor)]
        full, keywords = containers.unflatten(structure, values)
        try:
            out = function(*full, **keywords)
        except (GradtapeError, TypeError, ValueError):
            continue
        if [values[n].record for n in lifted if isinstance(values[n], Tensor)] == before:
            break  # otherwise it wrote to them: it must write to the arrays, or refuse
    else:
        lifted, out = [], function(*args, **kwargs)
    for n in set(arrays).difference(lifted):
        values_read(leaves[n])
    return out
