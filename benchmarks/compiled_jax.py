"""JAX's side of the compiled benchmarks: arrays on its device, training steps with donated buffers.

On a processor JAX hands work to a thread of its own and returns, unless it is told to compute in
the calling thread. Waiting for that thread costs more than a small computation; not having to wait
pays where the next step is dispatched meanwhile: both ways are measured. One array of a result is
waited for; the others come from the same computation.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.compiled_cases import Arrays
from benchmarks.compiled_functions import KINDS, Library
from benchmarks.compiled_program import Program

LIB = Library(
    jnp,
    jax.nn.relu,
    jax.nn.softmax,
    jax.nn.logsumexp,
    jax.value_and_grad,
    jax.vjp,
    jax.nn.sigmoid,
    jax.lax.scan,
    jax.lax.while_loop,
    jax.lax.map,
)


def program(kind: str, arrays: Arrays) -> Program:
    """Return the program of a kind as JAX runs it by default: dispatched to a thread."""
    jax.config.update("jax_enable_x64", _has_doubles(arrays))
    function, data, state = KINDS[kind].of(LIB), KINDS[kind].data, KINDS[kind].state
    names = {name: jnp.array(arrays[name]) for name in data.split(", ")}
    if not state:
        several = "" if kind in ("chain", "add") else "[-1]"
        call = f"f({data}){several}.block_until_ready()"
        return Program(call, names | {"f": jax.jit(function)}, result=f"f({data})")

    given = [arrays[name] for name in state.split(", ")]

    def start() -> Any:
        # Donated arrays are gone after a step, so every batch of steps needs its own.
        return jax.block_until_ready(jax.tree.map(jnp.array, given))

    donating = jax.jit(function, donate_argnums=tuple(range(len(given))))
    return Program(
        f"{state}, loss = f({state}, {data})",
        names | {"f": donating, "start": start},
        start=f"{state}, = start()",
        wait="loss.block_until_ready()",
        result=f"({state}, loss)",
    )


def synchronous_program(kind: str, arrays: Arrays) -> Program:
    """Return the program of a kind, computed in the calling thread."""
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    return program(kind, arrays)


def numpy_program(kind: str, arrays: Arrays) -> Program:
    """Return the program of a value and a gradient, from NumPy arrays to a float and an array."""
    jax.config.update("jax_enable_x64", _has_doubles(arrays))
    compiled = jax.jit(KINDS[kind].of(LIB))

    def f(*args: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = compiled(*args)
        return float(value), np.asarray(gradient)

    return Program(f"f({KINDS[kind].data})", arrays | {"f": f})


def _has_doubles(arrays: Arrays) -> bool:
    return any(leaf.dtype == np.float64 for leaf in jax.tree.leaves(arrays))
