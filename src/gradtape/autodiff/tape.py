"""`GradientTape`: a tape to hold in one's hands, at a level of its own."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from gradtape.autodiff.arguments import primal
from gradtape.autodiff.pushforward import push
from gradtape.autodiff.reverse import checked
from gradtape.backends import array_module
from gradtape.core.aval import aval_of
from gradtape.core.call import lift
from gradtape.core.nested import unshell, wrap
from gradtape.core.record import Leaf, Node, Segment
from gradtape.core.state import next_level
from gradtape.core.tensor import Tensor
from gradtape.core.walk import walk
from gradtape.errors import ShapeError, TapeError


class GradientTape:
    """Records what is done with the tensors it watches, and differentiates it.

    Use it in a `with` block, which ends the recording, or without. A tape answers once, unless it
    is persistent. Tapes nest: watch a tensor of another tape to get higher derivatives.

    Args:
        persistent: Whether `gradient` may be asked more than once.

    >>> with gt.GradientTape() as tape:
    ...     x = tape.watch(3.0)
    ...     y = x * x
    >>> tape.gradient(y, x)
    tensor(6.)
    """

    def __init__(self, *, persistent: bool = False) -> None:
        self.persistent = persistent
        self._segment: Segment | None = None
        self._used = False

    def __enter__(self) -> GradientTape:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the recording; what was recorded can still be differentiated."""
        self._level().active = False

    def __len__(self) -> int:
        """The number of records made so far."""
        return 0 if self._segment is None else self._segment.count()

    def __repr__(self) -> str:
        state = "used" if self._used else "recording" if self._level().active else "stopped"
        return f"<GradientTape, {state}, {len(self)} records>"

    def _level(self) -> Segment:
        # The level is given at the first watch: a tape made early but used inside a transform
        # has to be above it.
        if self._segment is None:
            self._segment = Segment(next_level(), "GradientTape")
        return self._segment

    def watch(self, value: Any) -> Tensor:
        """Return a tensor with the value of `value` that this tape records.

        Args:
            value: An array, tensor or float.

        Raises:
            DTypeError: The value is not floating or complex.
            TapeError: Recording has ended, or the value belongs to a tape or transform that was
                started after this tape watched its first tensor.
        """
        segment = self._level()
        if not segment.active:
            raise TapeError("watch: this tape has stopped recording; make a new gt.GradientTape()")
        below = unshell(primal(value, "watch", "the value"))
        node = below.record if isinstance(below, Tensor) else None
        if node is not None and node.segment.number >= segment.number:
            raise TapeError(
                f"watch: the tensor is recorded by {node.segment.label}, which was started later "
                "than this tape; open the tapes in the order of nesting"
            )
        return wrap(below, Leaf(segment))

    def gradient(
        self, targets: Any, sources: Any, *, output_gradients: Any = None
    ) -> Tensor | list[Tensor]:
        """Differentiate targets with respect to sources in one backward pass.

        Args:
            targets: One tensor or a sequence; several are summed. A non-scalar is summed as well.
            sources: One tensor or a sequence: what `watch` returned, or anything recorded.
            output_gradients: A cotangent per target, instead of ones.

        Returns:
            One gradient per source (a list for a sequence), zeros where the target does not depend
            on a source.

        Raises:
            TapeError: The tape was used already and is not persistent; a target or source was
                never on this tape.
        """
        self._check_use("gradient")
        many = isinstance(sources, Sequence)
        source_nodes = [self._node(s, "source") for s in (sources if many else [sources])]
        target_list = list(targets) if isinstance(targets, Sequence) else [targets]
        if output_gradients is None:
            seeds = [None] * len(target_list)
        elif isinstance(targets, Sequence):
            seeds = list(output_gradients)
        else:
            seeds = [output_gradients]
        if len(seeds) != len(target_list):
            raise ShapeError(
                f"gradient: came {len(seeds)} output_gradients for {len(target_list)} targets"
            )
        roots = []
        for target, seed in zip(target_list, seeds, strict=True):
            node = self._node(target, "target")
            if seed is None:
                aval = aval_of(target)
                seed = np.ones(aval.shape, aval.dtype)[()]
            else:
                seed = unshell(checked(seed, target, "gradient", "output gradient", "target"))
            roots.append((node, seed))
        self._finish()
        found = walk(self._level(), roots, sources=source_nodes)
        results = []
        for source, node in zip(sources if many else [sources], source_nodes, strict=True):
            below = unshell(source).value
            ct = found.get(node)
            if ct is None:
                aval = aval_of(source)
                ct = array_module(below).zeros(aval.shape, aval.dtype)
            ct = lift(ct, below)
            results.append(ct if isinstance(ct, Tensor) else Tensor(ct))
        return results if many else results[0]

    def forward_gradient(self, source: Tensor, target: Tensor, tangent: Any = None) -> Tensor:
        """Differentiate a target by pushing a tangent of the source forward along the records.

        Args:
            source: What to vary.
            target: What to differentiate.
            tangent: The direction, in the shape of the source; may be left out for a scalar.

        Returns:
            The derivative of the target in that direction, in the target's shape.

        Raises:
            TapeError: As for `gradient`.
            ShapeError: The source is not a scalar and no tangent was given.
        """
        self._check_use("forward_gradient")
        node, end = self._node(source, "source"), self._node(target, "target")
        if tangent is None:
            if source.shape != ():
                raise ShapeError(
                    f"forward_gradient: the source has shape {source.shape}; needed tangent=, the "
                    "direction to vary it in, as it is not a scalar"
                )
            tangent = np.ones((), source.dtype)[()]
        else:
            tangent = checked(tangent, source, "forward_gradient", "tangent", "source")
        self._finish()
        result = push({node: unshell(tangent)}, end, aval_of(target))
        result = lift(result, unshell(target).value)
        return result if isinstance(result, Tensor) else Tensor(result)

    def _check_use(self, what: str) -> None:
        if self._used and not self.persistent:
            raise TapeError(
                f"{what}: this tape was used already; a GradientTape answers once, unless it is "
                "made with gt.GradientTape(persistent=True)"
            )

    def _finish(self) -> None:
        self._used = True
        if not self.persistent:
            self.stop()

    def _node(self, tensor: Any, what: str) -> Node:
        """The node of a tensor of this tape."""
        if isinstance(tensor, Tensor):
            node = tensor.record
            if node is not None and node.segment is self._segment:
                return node
        advice = (
            "use the tensor watch returned, not the one given to it"
            if what == "source"
            else "compute it from watched tensors, before the `with` block ends"
        )
        raise TapeError(f"gradient: the {what} is not on this tape; {advice}")
