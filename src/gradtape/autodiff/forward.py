"""Forward mode: a level whose tensors carry a tangent beside their value."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.backends import array_module
from gradtape.core.aval import Abstract
from gradtape.core.broadcasting import fit
from gradtape.core.call import dispatch, is_differentiable
from gradtape.core.evaluate import push
from gradtape.core.hooks import HOOKS
from gradtape.core.level import Level, Node
from gradtape.core.nested import Nested, unshell
from gradtape.core.op import Op
from gradtape.core.state import next_level
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import GradtapeError, NotDifferentiableError


class Tangent(Node):
    """The node of a dual tensor: the level it belongs to and its derivative there."""

    __slots__ = ("tangent",)

    def __init__(self, level: ForwardLevel, tangent: Any) -> None:
        self.segment = level
        self.sequence = 0
        self.tangent = tangent


class ForwardLevel(Level):
    """One `jvp` in progress: ops on its duals push tangents along."""

    __slots__ = ()

    def __init__(self, label: str = "jvp") -> None:
        super().__init__(next_level(), label)

    def dual(self, primal: Any, tangent: Any) -> Tensor:
        """A tensor of this level."""
        return Nested(unshell(primal), Tangent(self, unshell(tangent)))

    def split(self, value: Any) -> tuple[Any, Any]:
        """Primal and tangent of a value; no tangent (None) if it does not depend on this level."""
        value = unshell(value)
        node = value.record if isinstance(value, Tensor) else None
        if isinstance(node, Tangent) and node.segment is self:
            return value.value, node.tangent
        return value, None

    def process(self, op: Op, args: list[Any], params: dict[str, Any]) -> Any:
        primals, tangents = zip(*(self.split(arg) for arg in args), strict=True)
        if op.pushed is not None:
            results = zip(*op.pushed(tangents, *primals, **params), strict=True)
            return tuple([self._pair(out, tangent) for out, tangent in results])
        out = dispatch(op, primals, params)
        if op.jvp is None:
            if not op.tracked:
                return out
            raise NotDifferentiableError(f"{op.name}: has no forward-mode derivative")
        try:
            with np.errstate(all="ignore"):
                tangent = push(op, tangents, out, primals, params)
        except GradtapeError as error:
            HOOKS.rule_failed(op, error)
            raise
        if op.outputs == 1:
            return self._pair(out, tangent)
        tangent = (None,) * len(out) if tangent is None else tangent
        return tuple(self._pair(o, t) for o, t in zip(out, tangent, strict=True))

    def _pair(self, out: Any, tangent: Any) -> Any:
        # Without a tangent it is a constant, and stays one even where a slope is infinite.
        if tangent is None or not is_differentiable(out):
            return out
        return self.dual(out, fit(tangent, out))


def zeros_like(value: Any) -> Any:
    """Zeros with the shape, dtype and device of a value of any level; a number for a number."""
    return _filled(value, 0)


def ones_like(value: Any) -> Any:
    """Ones with the shape, dtype and device of a value of any level; a number for a number."""
    return _filled(value, 1)


def _filled(value: Any, number: int) -> Any:
    if isinstance(value, np.generic):  # such as a loss
        return value.dtype.type(number)
    raw = innermost(value, show=True) if isinstance(value, Tensor) else value
    if isinstance(raw, Abstract):
        return raw.filled(number, value.shape, value.dtype)
    like = value if hasattr(value, "dtype") else np.asarray(value)
    module = array_module(raw)
    if not like.shape and module is np:
        return like.dtype.type(number)
    filled = module.empty(like.shape, like.dtype)
    filled.fill(number)
    return filled
