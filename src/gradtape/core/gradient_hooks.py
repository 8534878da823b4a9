"""Functions that a backward pass calls with the gradient of a tensor, as soon as it is complete.

Hooks are kept by the node of their tensor, so they live as long as it does. Its segment only knows
which nodes have some: a walk that finds none there pays nothing for them. Otherwise it keeps
cotangents apart from the records, and asks a `HookedWalk` at each record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any
from weakref import WeakSet, ref

import numpy as np

from gradtape.core.aval import aval_of
from gradtape.core.call import is_differentiable
from gradtape.core.level import LEAVES, Leaf, Node, Segment
from gradtape.core.needed_ops import needed
from gradtape.core.nested import unshell
from gradtape.core.record import Record
from gradtape.core.state import WATCHING, cotangent_given, no_grad, run_inside
from gradtape.core.tensor import Tensor
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    ShapeError,
    TapeError,
    UnsupportedError,
    WriteError,
    a_type,
)

Hook = Callable[[Any], Any]


class NodeHooks:
    """The hooks of a node.

    Attributes:
        on: Called with the gradient, which they may replace.
        after: Of a leaf, called with its tensor once `.grad` holds the gradient.
    """

    __slots__ = ("after", "on")

    def __init__(self) -> None:
        self.on: dict[HookHandle, Hook] = {}
        self.after: dict[HookHandle, Hook] = {}


class HookHandle:
    """A registered hook; `remove` takes it away again, and so does leaving a `with` block.

    >>> x = gt.ones(2, requires_grad=True)
    >>> with x.register_hook(lambda gradient: 10.0 * gradient):
    ...     gt.sum(x).backward()
    >>> gt.sum(x).backward()
    >>> x.grad
    tensor([11., 11.])
    """

    __slots__ = ("__weakref__", "_hooks", "_node")

    def __init__(self, node: Node, hooks: NodeHooks) -> None:
        self._hooks = hooks
        self._node = ref(node)  # a handle that is kept must not keep the history of its tensor

    def remove(self) -> None:
        """Take the hook away; nothing happens if that was done before."""
        hooks, node = self._hooks, self._node()
        hooks.on.pop(self, None)
        hooks.after.pop(self, None)
        if node is not None and not hooks.on and not hooks.after:
            node.segment.hooked.discard(node)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def add_hook(tensor: Tensor, hook: Hook, *, after: bool) -> HookHandle:
    """Register a hook for the gradient of a tensor.

    Args:
        tensor: A tensor that is recorded in reverse mode.
        hook: The function to call with its gradient.
        after: Whether to call it with the tensor instead, once `.grad` holds the gradient.

    Raises:
        ArgumentError: The hook is no function, or the tensor has no `.grad` for it to wait for.
        TapeError: The tensor is not recorded.
        UnsupportedError: Its gradient is computed outside of the function it is in.
    """
    name = "register_post_accumulate_grad_hook" if after else "register_hook"
    if not callable(hook):
        raise ArgumentError(f"{name}: got {a_type(hook)}, expected a function")
    node = tensor.fresh().record
    if node is None:
        raise TapeError(
            f"{name}: got a tensor that requires no gradient, or is not recorded, so that it gets "
            "none; call set_requires_grad() first, or take a tensor that a tape watches"
        )
    segment = node.segment
    if not isinstance(segment, Segment):
        raise UnsupportedError(
            f"{name}: got a tensor of {segment.label}, whose gradient is computed outside of the "
            "function it is in; register the hook there, or use gt.scale_gradient or gt.custom_vjp"
        )
    if after and not (isinstance(node, Leaf) and segment is LEAVES):
        raise ArgumentError(
            f"{name}: got a tensor recorded by {segment.label}, expected a leaf, which has a "
            ".grad; use register_hook"
        )
    hooks: NodeHooks | None = getattr(node, "hooks", None)
    if hooks is None:
        hooks = node.hooks = NodeHooks()
    handle = HookHandle(node, hooks)
    if after:
        hooks.after[handle] = _with_tensor(ref(tensor), hook)
    else:
        hooks.on[handle] = hook
    if segment.hooked is None:
        segment.hooked = WeakSet()
    segment.hooked.add(node)
    return handle


def _with_tensor(tensor: ref[Tensor], hook: Hook) -> Hook:
    """A hook that is given a tensor, as long as there is one."""

    def call(_gradient: Any) -> None:
        known = tensor()
        if known is not None:
            hook(known)

    return call


def is_hooked(segment: Segment) -> bool:
    """Whether a walk of a segment has to look for hooks."""
    return bool(segment.hooked or LEAVES.hooked)


class HookedWalk:
    """Calls hooks while a walk goes on: those of records in turn, those of leaves when complete.

    A leaf's gradient is complete when all records that use the leaf have been pulled. Records that
    no cotangent reaches are never pulled: leaves that they use are complete at the end.

    Args:
        roots: The nodes that the walk begins at.
        found: The cotangents of leaves, which the walk adds to.
        finish: `finish(leaf, ct)` takes the gradient of a leaf that has hooks to be called
            afterwards; None if there is no `.grad`.
        quiet: Whether what hooks do is not recorded.
    """

    def __init__(
        self,
        roots: Iterable[Node],
        found: dict[Node, Any],
        finish: Callable[[Leaf, Any], None] | None,
        *,
        quiet: bool,
    ) -> None:
        self._found, self._finish, self._quiet = found, finish, quiet
        self._left = _uses_of_hooked_leaves(roots)

    def arrived(self, record: Node, ct: Any) -> Any:
        """The cotangent of a record, as its hooks leave it."""
        hooks: NodeHooks | None = getattr(record, "hooks", None)
        return ct if hooks is None else self._called(hooks.on, ct)

    def pulled(self, parents: Iterable[Node | None]) -> None:
        """A record has given its parents their cotangents."""
        left = self._left
        for node in parents:
            if node in left:
                left[node] -= 1
                if not left[node]:
                    self._complete(node)

    def end(self) -> None:
        """Call the hooks of leaves that could not be known to be complete."""
        for leaf in [leaf for leaf in self._left if leaf in self._found]:
            self._complete(leaf)

    def _complete(self, leaf: Any) -> None:
        del self._left[leaf]
        if leaf not in self._found or leaf.off:
            return
        hooks = leaf.hooks
        ct = self._found[leaf] = self._called(hooks.on, self._found[leaf])
        if hooks.after and self._finish is not None:
            self._finish(leaf, self._found.pop(leaf))
            self._called(hooks.after, ct)

    def _called(self, hooks: Mapping[HookHandle, Hook], ct: Any) -> Any:
        for hook in list(hooks.values()):
            # A handle of its own: the hook may write to it, which is an error unless it returns it.
            now = ct.fresh() if isinstance(ct, Tensor) else None
            given = Tensor(ct) if now is None else type(now)(now.value, now.record)
            value = given.value
            result = run_inside(no_grad(), hook, given) if self._quiet else hook(given)
            if result is None and given.value is not value:
                raise WriteError(
                    f"register_hook: {_name(hook)} wrote to the gradient that it got and returned "
                    "None, so that nothing would change; return the new gradient"
                )
            if result is not None:
                before, ct = ct, _replaced(ct, result)
                if WATCHING:
                    cotangent_given(f"{_name(hook)} returned", ct, before)
        return ct


def _uses_of_hooked_leaves(roots: Iterable[Node]) -> dict[Any, int]:
    """How often the records that roots depend on use each leaf that has hooks."""
    uses: dict[Any, int] = {}
    stack, seen = list(roots), set[Node]()
    while stack:
        node = stack.pop()
        if isinstance(node, Leaf):
            hooks: NodeHooks | None = getattr(node, "hooks", None)
            if hooks is not None and (hooks.on or hooks.after):
                uses[node] = uses.get(node, 0) + 1
        elif isinstance(node, Record) and node not in seen:
            seen.add(node)
            stack += [parent for parent in node.parents if parent is not None]
    return uses


def _name(hook: Hook) -> str:
    """The name of a hook and where its code is, for messages."""
    code = getattr(hook, "__code__", None)
    name = getattr(hook, "__qualname__", type(hook).__qualname__)
    return f"the hook {name}" + (
        f" ({code.co_filename}:{code.co_firstlineno})" if isinstance(code, CodeType) else ""
    )


def _replaced(ct: Any, result: Any) -> Any:
    """The cotangent that a hook returned in place of another, checked to fit."""
    aval = aval_of(ct)
    number = type(result) in (int, float, complex)
    if not (number or isinstance(result, Tensor) or hasattr(result, "dtype")):
        raise DTypeError(
            f"register_hook: the hook returned {a_type(result)}, expected {aval}, an array or a "
            "tensor; return None to leave the gradient as it is"
        )
    if number:  # an int has no dtype of its own, as in arithmetic
        result = np.asarray(float(result) if type(result) is int else result)[()]
    new = aval_of(result)
    if new.shape != aval.shape:
        got = f"the number {result}" if number else f"shape {new.shape}"
        raise ShapeError(
            f"register_hook: the hook returned {got}, expected shape {aval.shape}, that of the "
            "gradient; return None to leave it as it is"
        )
    if not is_differentiable(result) or (new.dtype.kind == "c") > (aval.dtype.kind == "c"):
        raise DTypeError(
            f"register_hook: the hook returned {new.dtype}, expected {aval.dtype}, the dtype of "
            "the gradient"
        )
    result = unshell(result)
    return result if new.dtype == aval.dtype else needed.astype(result, aval.dtype)


needed.fill(add_hook=add_hook)
