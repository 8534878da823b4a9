"""Fan-in and fan-out: how many numbers go into an output of a layer, and out of an input."""

from __future__ import annotations

import math
from typing import NamedTuple


class Fans(NamedTuple):
    """How many numbers go into each output of a layer, and out of each input."""

    inputs: int
    outputs: int


def fans(shape: tuple[int, ...], outputs_first: bool | None = None) -> Fans:
    """Return fan-in and fan-out of an array of weights.

    Args:
        shape: Its shape. The number of elements of a kernel, over all axes but those of inputs and
            outputs, multiplies both; of a vector, both are its size.
        outputs_first: Whether the first axes are outputs and inputs, as PyTorch has them; if not,
            the last ones are inputs and outputs, as Keras has them. None: first with three axes or
            more, as `gt.nn.conv2d` takes kernels, last for a matrix, as in `x @ w`.

    >>> from gradtape.nn.init import fans
    >>> fans((20, 16)), fans((32, 8, 3, 3)), fans((3, 3, 8, 32), outputs_first=False)
    (Fans(inputs=20, outputs=16), Fans(inputs=72, outputs=288), Fans(inputs=72, outputs=288))
    """
    if len(shape) < 2:
        size = math.prod(shape)
        return Fans(size, size)
    first = len(shape) > 2 if outputs_first is None else outputs_first
    if first:
        outputs, inputs, *kernel = shape
    else:
        *kernel, inputs, outputs = shape
    area = math.prod(kernel)
    return Fans(inputs * area, outputs * area)
