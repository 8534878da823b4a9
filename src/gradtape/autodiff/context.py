"""Backward passes of gradient contexts: `compute_gradients` and `Tensor.backward`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.autodiff.arguments import checked
from gradtape.autodiff.forward import ones_like
from gradtape.backends import array_module
from gradtape.core.copies import copied
from gradtape.core.level import LEAVES, Leaf, Node, Segment
from gradtape.core.needed_ops import needed
from gradtape.core.nested import unshell
from gradtape.core.record import Record
from gradtape.core.state import CONTEXT_LEVEL, cotangent_given, current, current_context
from gradtape.core.tensor import Tensor
from gradtape.core.walk import walk
from gradtape.errors import ContextError, TapeError
from gradtape.locks import guard


def compute_gradients(
    target: Tensor,
    gradient: Any = None,
    *,
    create_graph: bool = False,
    release: bool = False,
) -> None:
    """Walk the active context's tape back from a target and add to `.grad` of every leaf.

    Args:
        target: The tensor to differentiate, usually a loss.
        gradient: The cotangent to start from; ones if not given, so that a non-scalar target is
            summed.
        create_graph: Whether the backward pass is itself recorded, so that `.grad` can be
            differentiated again.
        release: Whether to free what the records keep on the way, as soon as it is not needed:
            memory goes down while the walk goes on. The target cannot be walked again, nor if a
            rule raises an error after something large was freed.

    Raises:
        ContextError: The target was recorded in a context that is not active, or was cleared.
        TapeError: The target does not depend on anything that requires a gradient.

    >>> w = gt.ones(3, requires_grad=True)
    >>> gt.compute_gradients(gt.sum(w * w))
    >>> w.grad
    tensor([2., 2., 2.])
    """
    target, record = _on_active_tape(target)
    tape = current_context().tape
    if create_graph and current().floor >= CONTEXT_LEVEL:
        raise TapeError(
            "compute_gradients: create_graph=True records the backward pass, and no_grad is "
            "on; leave one of them out"
        )
    # The walk empties the list: nothing else may hold the cotangent.
    roots = [(record, _seed(target, gradient, create_graph))]
    segment = tape.segment if create_graph else None

    def finish(leaf: Leaf, ct: Any) -> None:
        # The walk may still pass the same array on.
        _accumulate(leaf, copied(ct) if type(ct) is np.ndarray else ct, segment)

    found = walk(tape.segment, roots, create_graph=create_graph, release=release, finish=finish)
    if isinstance(record, Record):
        tape.segment.remember(record)
    for leaf, ct in found.items():
        if isinstance(leaf, Leaf) and not leaf.off:
            _accumulate(leaf, ct, segment)


def _seed(target: Tensor, given: Any, create_graph: bool) -> Any:
    """The cotangent to start from: ones, or the one the user gave."""
    if given is None:
        seed = ones_like(target.value)
    else:
        seed = checked(given, target, "compute_gradients", "gradient", "target")
        # One without history needs no op to forget it, which would take as long as the rest.
        plain = type(seed) is Tensor and seed.record is None
        if not create_graph and isinstance(seed, Tensor) and not plain:
            seed = seed.detach()  # otherwise the backward pass would be recorded through it
        seed = unshell(seed)
        cotangent_given("the gradient that the backward pass begins with has", seed)
    return Tensor(seed) if create_graph and not isinstance(seed, Tensor) else seed


def _accumulate(leaf: Leaf, ct: Any, segment: Segment | None) -> None:
    """Add to the gradient of a leaf, which several threads may share.

    The sum is recorded in `segment`; a gradient that was recorded elsewhere counts as a constant.
    """
    if type(ct) is np.ndarray:
        new = Tensor(ct)
    else:
        new = ct.fresh() if isinstance(ct, Tensor) else Tensor(array_module(ct).asarray(ct))
    while True:
        old = leaf.so_far
        if old is None:
            total = new
        elif old.record is None or old.record.segment is segment:
            total = old + new
        else:
            total = old.detach() + new
        with guard:
            # Otherwise another thread, or a signal handler, has added something meanwhile.
            if leaf.so_far is old:
                leaf.so_far = total
                return


def _on_active_tape(target: Any) -> tuple[Tensor, Node]:
    """The target and its node, if the active context can differentiate it."""
    active = current_context()
    target = target.fresh() if isinstance(target, Tensor) else target
    node = target.record if type(target) is Tensor else None
    if node is not None and node.segment is active.tape.segment:
        return target, node
    target = unshell(target) if isinstance(target, Tensor) else target
    # Tapes and transforms above the contexts record the same computation at their own levels.
    while isinstance(target, Tensor) and isinstance(target.value, Tensor):
        target = unshell(target.value)
    if not isinstance(target, Tensor) or target.record is None:
        raise TapeError(
            "compute_gradients: the target does not depend on any tensor that requires a "
            "gradient, or was computed under no_grad; leave no_grad, or first call "
            "x.set_requires_grad(), net.requires_grad_() of a module"
        )
    segment = target.record.segment
    if segment is LEAVES or segment is active.tape.segment:
        return target, target.record
    if segment.number > CONTEXT_LEVEL:
        if segment.label == "GradientTape":
            advice = "use tape.gradient"
        elif segment.label == "gt.run":
            advice = "use gt.graph.grad([y], [x])"
        else:
            advice = "use gt.value_and_grad inside of the function, and apply() of an optimizer in "
            advice += "place of step(); or return the value and go on outside"
        raise TapeError(
            f"compute_gradients: got a target recorded by {segment.label}, expected one recorded "
            f"by a gradient context; {advice}"
        )
    advice = (
        "re-enter it with `with ctx:`"
        if segment.walkable
        else "compute the gradients before that, or compute the target anew"
    )
    raise ContextError(
        f"compute_gradients: the target was recorded by {segment.label}, and context {active.id} "
        f"is active; {advice}"
    )


needed.fill(compute_gradients=compute_gradients)
