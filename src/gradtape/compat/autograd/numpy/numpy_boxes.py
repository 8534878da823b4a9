"""The class that tracked arrays are instances of."""

from gradtape.compat.autograd.tracer import Box


class ArrayBox(Box):
    """What autograd tracks an array in; tensors are instances of it."""

    __array_priority__ = 100.0
    _holds_arrays = True
