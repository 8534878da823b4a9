"""Whole arrays: native code for ops on large arrays that are not cut into tiles.

These are ops that work plane by plane, such as pooling and resizing, those along axes other than
the last, and elementwise ops on shapes that have no rows in common. Such an op, or its derivative
rule, is compiled for the given sizes. Images may be stored with channels first or last: they are
read and written as they are. Ops without a native form are computed by NumPy as always.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.program import Program
from gradtape.core.aval import Aval, aval_of
from gradtape.core.call import call
from gradtape.core.copies import copied
from gradtape.core.kernels import Task, goes_by_parts
from gradtape.core.op import BY_AXIS, Op
from gradtape.core.promotion import NATIVE
from gradtape.kernels.tile_kernels import Variants, trace_present
from gradtape.ops.shape import broadcast_to

# Takes arrays; returns a tuple of arrays and None.
Function = Callable[..., tuple[Any, ...]]

# The most sizes to compile one op for: sizes that differ at each call are not worth it.
_MOST_SIZES = 128
# Kinds of ops that take no longer than copying an array that is not contiguous, and far less time
# than compiling them does: that pays only if a program has few sizes of them.
_CHEAP = ("elementwise", "reduction")
_MOST_CHEAP = 32


class _SizedProgram(NamedTuple):
    """A program for arrays of some sizes.

    Attributes:
        program: Runs native code.
        tables: Arrays it reads besides its arguments.
        present: Which results there are.
    """

    program: Program
    tables: list[Any]
    present: list[bool]


class WholeArrays:
    """All programs of this process for whole arrays."""

    name = "whole"
    for_elements = False

    def __init__(self) -> None:
        self._programs = Variants()

    def run(self, task: Task) -> Any:
        return self._forward(task) if task.wanted is None else self._pull(task)

    def _forward(self, task: Task) -> Any:
        op, operands, params, _ = task
        if op.heavy is None and not goes_by_parts(op):
            return NotImplemented
        layout = (
            _ChannelOrder(False) if op.kind == "contraction" else _ChannelOrder.of(operands, params)
        )
        params = layout.params(params)

        def function(*arrays: Any) -> Any:
            return (call(op, arrays, params),)

        made = self._run((op, (*params.items(),)), op, function, operands, layout)
        return NotImplemented if made is None else made[0]

    def _pull(self, task: Task) -> Any:
        op, values, params, wanted = task
        assert wanted is not None
        read = [x is not None and not isinstance(x, Aval) for x in values]
        arrays = [x for x, own in zip(values, read, strict=True) if own]
        # The operands of the forward are a better guide to the memory layout than the cotangent.
        layout = _ChannelOrder.of([*arrays[1:], values[0]], params)
        params = layout.params(params)
        unread = [None if own else layout.aval(x) for x, own in zip(values, read, strict=True)]

        def function(*arrays: Any) -> Any:
            rest = iter(arrays)
            ct, out, *xs = (next(rest) if own else x for own, x in zip(read, unread, strict=True))
            rules = zip(op.careful, wanted, strict=True)
            return tuple(rule(ct, out, *xs, **params) if want else None for rule, want in rules)

        shapes = tuple(x and (x.shape, x.dtype) for x in unread)
        key = op, wanted, (*read,), shapes, (*params.items(),)
        made = self._run(key, op, function, arrays, layout)
        return NotImplemented if made is None else made

    def _run(
        self,
        key: Hashable,
        op: Op,
        function: Function,
        arrays: Sequence[Any],
        layout: _ChannelOrder,
    ) -> list[Any] | None:
        """The results of a function of arrays in memory order; None if it has no native code."""
        cheap = op.kind in _CHEAP
        given = [layout.elements(x, copy=not cheap) for x in arrays]
        if any(x is None for x in given):
            return None
        avals = [layout.aval(x) for x in arrays]
        key = key, *((x.shape, aval.shape, x.dtype) for x, aval in zip(given, avals, strict=True))
        compiled = self._programs.find(
            op,
            key,
            lambda: _compiled(function, given, avals, op.name),
            _MOST_CHEAP if cheap else _MOST_SIZES,
        )
        if compiled is None:
            return None
        made = iter(compiled.program(*given, *compiled.tables))
        return [layout.seen(next(made)) if there else None for there in compiled.present]


class _ChannelOrder(NamedTuple):
    """Whether images are stored with their second axis, channels, last in memory."""

    channels_last: bool

    @classmethod
    def of(cls, arrays: Sequence[Any], params: dict[str, Any]) -> _ChannelOrder:
        """The order of the first array that shows one, for an op on planes after a channel axis."""
        plane = max((len(v) for name, v in params.items() if name in BY_AXIS), default=0)
        for x in arrays if plane else ():
            if type(x) is np.ndarray and x.ndim >= plane + 2 and any(x.strides):
                if x.flags.c_contiguous:
                    return cls(False)
                if np.moveaxis(x, 1, -1).flags.c_contiguous:
                    return cls(True)
        return cls(False)

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of the op on arrays in memory order: a last channel axis is left alone."""
        if not self.channels_last:
            return params
        return {name: (*v, None) if name in BY_AXIS else v for name, v in params.items()}

    def elements(self, x: Any, *, copy: bool) -> Any:
        """The elements of an array in memory order, without repetitions; None if not supported."""
        if type(x) is not np.ndarray or x.dtype not in NATIVE or not x.size:
            return None
        turned = np.moveaxis(x, 1, -1) if self.channels_last else x
        if 0 in turned.strides:
            turned = turned[tuple(slice(None if step else 1) for step in turned.strides)]
        if turned.flags.c_contiguous and turned.flags.aligned:
            return turned
        return copied(turned) if copy else None

    def seen(self, elements: Any) -> Any:
        """The array that has these elements in memory order."""
        return np.moveaxis(elements, -1, 1) if self.channels_last else elements

    def aval(self, x: Any) -> Any:
        """The shape and dtype of all elements in memory order."""
        if x is None:
            return None
        if not self.channels_last:
            return Aval(x.shape, x.dtype)
        samples, channels, *others = x.shape
        return Aval((samples, *others, channels), x.dtype)


def _compiled(
    function: Function, given: Sequence[Any], avals: Sequence[Aval], name: str
) -> _SizedProgram | None:
    """A function of arrays as native code; None if not all of it has a native form."""

    def of_elements(*elements: Any) -> Any:
        pairs = zip(elements, avals, strict=True)
        return function(*(x if x.shape == a.shape else broadcast_to(x, a.shape) for x, a in pairs))

    traced, present = trace_present(of_elements, [aval_of(x) for x in given], name)
    if traced is None:
        return None
    program = Program(traced.graph)
    if program.native is None:
        return None
    return _SizedProgram(program, [capture.value for capture in traced.captures], present)
