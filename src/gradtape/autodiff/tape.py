"""`GradientTape`: an explicit tape, at a level of its own."""

from __future__ import annotations

import functools
from typing import Any

from gradtape import tree
from gradtape.autodiff.arguments import checked, primal
from gradtape.autodiff.checkpoint_config import CheckpointConfig
from gradtape.autodiff.checkpoint_strategies import CheckpointReport
from gradtape.autodiff.forward import ones_like, zeros_like
from gradtape.autodiff.pushforward import push
from gradtape.core import release
from gradtape.core.aval import aval_of
from gradtape.core.call import lift
from gradtape.core.level import Leaf, Node, Segment
from gradtape.core.nested import unshell, wrap
from gradtape.core.state import next_level
from gradtape.core.tensor import Tensor
from gradtape.core.walk import own, walk
from gradtape.errors import ArgumentError, ShapeError, TapeError, a_type


class _Constructor:
    """A method that makes a tape: called on the class, or on a tape whose options it keeps."""

    def __init__(self, option: str) -> None:
        self._option = option

    def __get__(self, tape: GradientTape | None, owner: type[GradientTape]) -> Any:
        return functools.partial(self._make, owner, tape)

    def _make(self, owner: type[GradientTape], tape: GradientTape | None, config: Any) -> Any:
        if tape is not None and len(tape):
            raise TapeError(
                f"with_{self._option}_config: got a tape that has recorded something already, "
                f"expected one without records; use gt.GradientTape({self._option}=config)"
            )
        options = {} if tape is None else tape._options()
        return owner(**{**options, self._option: config})


class GradientTape:
    """Records what is done with the tensors it watches, and differentiates it.

    Use it in a `with` block, which ends the recording, or without one. Another `with` block of the
    same tape goes on recording; if the tape is used up, it starts afresh, and tensors have to be
    watched again. A tape answers once, unless it is persistent. Tapes nest: watch a tensor of
    another tape to get higher derivatives.

    Args:
        persistent: Whether `gradient` may be called more than once.
        checkpoint: Which results it keeps for the backward pass; the others are computed again.
            Everything that rules read if not given.

    >>> with gt.GradientTape() as tape:
    ...     x = tape.watch(3.0)
    ...     y = x * x
    >>> tape.gradient(y, x)
    tensor(6.)
    """

    def __init__(
        self, *, persistent: bool = False, checkpoint: CheckpointConfig | None = None
    ) -> None:
        self._segment: Segment | None = None
        if not (checkpoint is None or isinstance(checkpoint, CheckpointConfig)):
            raise ArgumentError(
                f"GradientTape: got {a_type(checkpoint)} for checkpoint, expected a "
                "gt.CheckpointConfig"
            )
        self.persistent = persistent
        self._checkpoint = checkpoint
        self._used = False
        self._stopped = False
        self._open = False  # whether a `with` block is open

    with_checkpoint_config = _Constructor("checkpoint")

    def _options(self) -> dict[str, Any]:
        """What it was made with."""
        return {"persistent": self.persistent, "checkpoint": self._checkpoint}

    def __enter__(self) -> GradientTape:
        if self._open:
            raise TapeError(
                "GradientTape: got a second `with` block of a tape inside of its first, which "
                "would end the recording of both; leave one out, or make another gt.GradientTape()"
            )
        if self._used and not self.persistent:
            self._segment, self._used = None, False
        self._open, self._stopped = True, False
        if self._segment is not None:
            self._segment.active = True
        return self

    def __exit__(self, *error: object) -> None:
        self._open = False
        self.stop()

    def stop(self) -> None:
        """End the recording; what was recorded can still be differentiated."""
        self._stopped = True
        if self._segment is not None:
            self._segment.active = False

    def __len__(self) -> int:
        """The number of records made so far."""
        return 0 if self._segment is None else self._segment.count()

    def __repr__(self) -> str:
        state = "used" if self._used else "stopped" if self._stopped else "recording"
        return f"<GradientTape, {state}, {len(self)} records>"

    @property
    def checkpoint_report(self) -> CheckpointReport | None:
        """What a checkpointing tape kept and computed again so far; None for other tapes."""
        policy = None if self._segment is None else self._segment.policy
        return None if policy is None else policy.report

    def _level(self) -> Segment:
        # The level is assigned at the first watch: a tape made early but used inside a transform
        # has to be above it.
        if self._segment is None:
            policy = None if self._checkpoint is None else self._checkpoint.policy()
            self._segment = Segment(next_level(), "GradientTape", policy=policy)
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
        if self._stopped:
            raise TapeError(
                "watch: this tape has stopped recording; watch inside of its `with` block, or make "
                "a new gt.GradientTape()"
            )
        segment = self._level()
        below = unshell(primal(value, "watch", "the value"))
        node = below.record if isinstance(below, Tensor) else None
        if node is not None and node.segment.number >= segment.number:
            raise TapeError(
                f"watch: the tensor is recorded by {node.segment.label}, which was started later "
                "than this tape; open the tapes in the order of nesting"
            )
        return wrap(below, Leaf(segment, below))

    def gradient(self, targets: Any, sources: Any, *, output_gradients: Any = None) -> Any:
        """Differentiate targets with respect to sources in one backward pass.

        Args:
            targets: One tensor or a container; several are summed. A non-scalar is summed as well.
            sources: One tensor or a container: tensors returned by `watch`, or anything recorded.
            output_gradients: A cotangent per target, instead of ones.

        Returns:
            One gradient per source, in the same container; zeros where the target does not depend
            on a source.

        Raises:
            TapeError: The tape was used already and is not persistent; a target or source was
                never on this tape.
        """
        self._check_use("gradient")
        leaves, structure = tree.flatten(sources)
        origins = [self._on_tape(source, "source") for source in leaves]
        ends = [self._on_tape(target, "target") for target in tree.flatten(targets)[0]]
        # The walk empties the list: nothing else may hold the cotangents.
        seeds = _seeds([end for end, _ in ends], output_gradients)
        roots = [(node, seeds.pop(0)) for _, node in ends]
        for _, node in origins:
            _check_order(node, [end for _, end in ends])
        self._finish()
        sought = [node for _, node in origins]
        found = walk(self._level(), roots, sources=sought, last=not self.persistent)
        self._let_go([node for _, node in (*origins, *ends)])
        results = []
        for origin, node in origins:
            ct = found.get(node)
            ct = lift(zeros_like(origin) if ct is None else ct, origin.value)
            results.append(ct if isinstance(ct, Tensor) else Tensor(ct))
        return tree.unflatten(structure, results)

    def forward_gradient(self, source: Tensor, target: Tensor, tangent: Any = None) -> Tensor:
        """Differentiate a target by pushing a tangent of the source forward along the records.

        Args:
            source: The tensor to vary.
            target: The tensor to differentiate.
            tangent: The direction, in the shape of the source; may be left out for a scalar.

        Returns:
            The derivative of the target in that direction, in the target's shape.

        Raises:
            TapeError: As for `gradient`.
            ShapeError: The source is not a scalar and no tangent was given.
        """
        self._check_use("forward_gradient")
        origin, start = self._on_tape(source, "source", "forward_gradient")
        end, node = self._on_tape(target, "target", "forward_gradient")
        _check_order(start, [node], "forward_gradient")
        if tangent is None:
            if source.shape != ():
                raise ShapeError(
                    f"forward_gradient: the source has shape {source.shape}, expected a scalar; "
                    "give the direction to vary it in as tangent="
                )
            tangent = ones_like(origin)
        else:
            tangent = checked(tangent, origin, "forward_gradient", "tangent", "source")
        self._finish()
        result = push({start: unshell(tangent)}, node, aval_of(end))
        self._let_go([start, node])
        result = lift(own(result, {id(tangent)}), end.value)
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

    def _let_go(self, known: list[Node]) -> None:
        """Free the records once a tape that answers only once has answered."""
        if not self.persistent and self._segment is not None:
            release.end((self._segment,), self._segment.label, known)

    def __del__(self) -> None:
        # No one can ask any more, and the records would live as long as their results.
        if self._segment is not None and self._segment.walkable:
            release.end((self._segment,), self._segment.label)

    def _on_tape(self, tensor: Any, what: str, asked: str = "gradient") -> tuple[Tensor, Node]:
        """The part of a tensor at this tape's level; levels above it are skipped."""
        inner = tensor
        while isinstance(inner, Tensor):
            inner = inner.fresh()
            if inner.record is not None and inner.record.segment is self._segment:
                return inner, inner.record
            inner = inner.value
        advice = (
            "use the tensor watch returned, not the one given to it"
            if what == "source"
            else "compute it from watched tensors, before the `with` block ends"
        )
        raise TapeError(f"{asked}: the {what} is not on this tape; {advice}")


def _check_order(source: Node, targets: list[Node], asked: str = "gradient") -> None:
    """Raise for a source that was made after every target: most likely they were swapped."""
    if all(source.sequence > target.sequence for target in targets):
        raise TapeError(
            f"{asked}: the source was computed after the target and cannot influence it; the "
            "order is gradient(targets, sources) and forward_gradient(source, target)"
        )


def _seeds(targets: list[Tensor], given: Any) -> list[Any]:
    """A cotangent per target: ones, or those the user gave."""
    if given is None:
        return [ones_like(target) for target in targets]
    seeds = tree.flatten(given)[0]
    if len(seeds) != len(targets):
        raise ShapeError(
            f"gradient: got {len(seeds)} output_gradients for {len(targets)} targets, expected "
            "one per target"
        )
    return [
        unshell(checked(seed, target, "gradient", "output gradient", "target"))
        for seed, target in zip(seeds, targets, strict=True)
    ]
