"""`GradientTape`: an explicit tape, at a level of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradtape import advice, containers
from gradtape.advice.tensor_attributes import TAPE, refuse
from gradtape.autodiff.arguments import as_primals, checked, primal
from gradtape.autodiff.checkpoint_config import CheckpointConfig
from gradtape.autodiff.checkpoint_strategies import CheckpointReport
from gradtape.autodiff.forward import ones_like, zeros_like
from gradtape.autodiff.jacobian_plan import Schedule
from gradtape.autodiff.jacobian_sweeps import jacobian_blocks
from gradtape.autodiff.pushforward import push
from gradtape.autodiff.scheduler import SchedulerConfig
from gradtape.autodiff.tape_records import TapeRecord, TapeRecords, records_of
from gradtape.core import release
from gradtape.core.aval import aval_of
from gradtape.core.call import lift
from gradtape.core.finite import is_traced
from gradtape.core.level import WITH_MODES, Leaf, Node, Segment
from gradtape.core.nested import unshell, wrap
from gradtape.core.state import (
    Mode,
    Scope,
    State,
    TapeConfig,
    checked_flag,
    cotangent_given,
    in_force,
    next_level,
    run_inside,
)
from gradtape.core.tape_modes import tapes_in_force
from gradtape.core.tensor import Tensor, note_places
from gradtape.core.walk import own, walk
from gradtape.errors import ArgumentError, DTypeError, ShapeError, TapeError, a_type


class _OnClassOrTape:
    """A method whose first argument is the tape, or the class if it is called on that."""

    def __init__(self, function: Callable[..., GradientTape]) -> None:
        self._function = function
        self.__doc__, self.__wrapped__ = function.__doc__, function

    def __get__(
        self, tape: GradientTape | None, owner: type[GradientTape]
    ) -> Callable[..., GradientTape]:
        return MethodType(self._function, owner if tape is None else tape)


class _Exit:
    """`__exit__` of a tape: Python looks it up before `__enter__`, as for `core.state.Scope`.

    So the block of modes is undone as theirs are, also if an interrupt comes in between.
    """

    def __get__(self, tape: GradientTape | None, owner: type) -> Callable[..., None]:
        if tape is None:
            return lambda tape, *error: tape.__exit__(*error)
        return functools.partial(tape._left, tape._block.__exit__ if tape._block.modes else None)


class _Block(Scope):
    """The `with` block of a tape with modes, which see all that is computed in it."""

    def __init__(self, modes: tuple[Mode, ...]) -> None:
        self.modes = modes

    def change(self, state: State, before: State | None = None) -> State:
        further = [mode for mode in state.modes if mode not in self.modes]
        return state.derive(modes=in_force((*self.modes, *further)))


_NO_MODES = _Block(())


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
        scheduler: How `jacobian` chooses between forward, reverse and mixed mode; by the estimated
            time if not given.
        amp: Which ops are computed in 16 bits, a `gt.AmpConfig`. It holds for all that is computed
            in the tape's `with` block, and for what is recorded on the tape without one; inside of
            `with gt.autocast(...)` that decides. So does `deterministic`.
        deterministic: Where random numbers come from, and what may be computed at all, a
            `gt.DeterministicConfig`.
        lines: Whether to note the line of your code for each record, for `records`; that takes a
            few microseconds each.
        enabled: Whether it records at all. If not, `watch` returns tensors that are not recorded,
            and computing with them costs what it does without a tape.

    Raises:
        ArgumentError: An option is not what it has to be.

    >>> with gt.GradientTape() as tape:
    ...     x = tape.watch(3.0)
    ...     y = x * x
    >>> tape.gradient(y, x)
    tensor(6.)
    """

    def __init__(
        self,
        *,
        persistent: bool = False,
        checkpoint: CheckpointConfig | None = None,
        scheduler: SchedulerConfig | None = None,
        amp: TapeConfig | None = None,
        deterministic: TapeConfig | None = None,
        lines: bool = False,
        enabled: bool = True,
    ) -> None:
        self._segment: Segment | None = None
        self._amp, self._deterministic = amp, deterministic
        for option, config, kind in (
            ("checkpoint", checkpoint, CheckpointConfig),
            ("scheduler", scheduler, SchedulerConfig),
        ):
            if config is not None:
                _check_config("GradientTape", option, config, kind)
        plain = amp is None and deterministic is None
        self._block = _NO_MODES if plain else _Block(self._new_modes())
        self.persistent = persistent
        self._checkpoint = checkpoint
        self._scheduler = scheduler
        self._schedule: Schedule | None = None
        self._lines = checked_flag("GradientTape", "lines", lines)
        self.enabled = checked_flag("GradientTape", "enabled", enabled)
        self._used = False
        self._stopped = False
        self._open = False  # whether a `with` block is open

    @_OnClassOrTape
    def with_checkpoint_config(
        self: GradientTape | type[GradientTape], config: CheckpointConfig
    ) -> GradientTape:
        """Make a tape that keeps what a checkpoint config says; on a tape, one with its options.

        For further options, use `gt.GradientTape(checkpoint=config, persistent=True)`.

        Args:
            config: Which results the tape keeps for the backward pass.

        Returns:
            A new tape. Called on a tape, it has all its options besides.

        Raises:
            ArgumentError: It is no `gt.CheckpointConfig`.
            TapeError: It was called on a tape that watches something already.

        >>> config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full)
        >>> tape = gt.GradientTape.with_checkpoint_config(config)
        >>> x = tape.watch(2.0)
        >>> tape.gradient(x**3, x)
        tensor(12.)
        """
        return _with_config(self, "checkpoint", config, CheckpointConfig)

    @_OnClassOrTape
    def with_scheduler_config(
        self: GradientTape | type[GradientTape], config: SchedulerConfig
    ) -> GradientTape:
        """Make a tape whose `jacobian` goes by a scheduler config; on a tape, with its options.

        For further options, use `gt.GradientTape(scheduler=config, persistent=True)`.

        Args:
            config: How `jacobian` chooses between forward, reverse and mixed mode.

        Returns:
            A new tape. Called on a tape, it has all its options besides.

        Raises:
            ArgumentError: It is no `gt.SchedulerConfig`.
            TapeError: It was called on a tape that watches something already.

        >>> config = gt.SchedulerConfig(strategy=gt.SchedulingStrategy.Reverse)
        >>> tape = gt.GradientTape.with_scheduler_config(config)
        >>> x = tape.watch(np.array([1.0, 2.0]))
        >>> _ = tape.jacobian(x**2, x)
        >>> tape.schedule.mode
        'reverse'
        """
        return _with_config(self, "scheduler", config, SchedulerConfig)

    @_OnClassOrTape
    def with_amp_config(
        self: GradientTape | type[GradientTape], config: TapeConfig
    ) -> GradientTape:
        """Make a tape that computes in 16 bits where a config says so; on a tape, with its options.

        For further options, use `gt.GradientTape(amp=config, persistent=True)`.

        Args:
            config: Which ops are computed in 16 bits.

        Returns:
            A new tape. Called on a tape, it has all its options besides.

        Raises:
            ArgumentError: It is no `gt.AmpConfig`.
            TapeError: It was called on a tape that watches something already.

        >>> config = gt.AmpConfig(precision_mode=gt.PrecisionMode.BFloat16)
        >>> tape = gt.GradientTape.with_amp_config(config)
        >>> w = tape.watch(np.ones((3, 2), np.float32))
        >>> y = np.ones((1, 3), np.float32) @ w
        >>> y.dtype, tape.gradient(y, w).dtype
        (dtype(bfloat16), dtype('float32'))
        """
        return _with_config(self, "amp", config)

    @_OnClassOrTape
    def with_deterministic_config(
        self: GradientTape | type[GradientTape], config: TapeConfig
    ) -> GradientTape:
        """Make a tape whose results are the same in every run; on a tape, one with its options.

        For further options, use `gt.GradientTape(deterministic=config, persistent=True)`.

        Args:
            config: Where random numbers come from, and what is refused.

        Returns:
            A new tape. Called on a tape, it has all its options besides.

        Raises:
            ArgumentError: It is no `gt.DeterministicConfig`.
            TapeError: It was called on a tape that watches something already.

        >>> config = gt.DeterministicConfig(global_seed=7)
        >>> tape = gt.GradientTape.with_deterministic_config(config)
        >>> x = tape.watch(gt.ones(1000))
        >>> y = gt.nn.dropout(x, 0.25)
        >>> tape.gradient(gt.sum(y), x)[:4]
        tensor([1.33333333, 1.33333333, 1.33333333, 1.33333333])
        """
        return _with_config(self, "deterministic", config)

    def _new_modes(self) -> tuple[Mode, ...]:
        """The modes of its configs, the innermost first."""
        found: list[Mode] = []
        for option, config in (("amp", self._amp), ("deterministic", self._deterministic)):
            if config is not None:
                _check_tape_config("GradientTape", option, config)
                mode = config.tape_mode()
                found += [] if mode is None else [mode]
        return tuple(found)

    def _options(self) -> dict[str, Any]:
        """What it was made with."""
        return {
            "persistent": self.persistent,
            "checkpoint": self._checkpoint,
            "scheduler": self._scheduler,
            "amp": self._amp,
            "deterministic": self._deterministic,
            "lines": self._lines,
            "enabled": self.enabled,
        }

    def __enter__(self) -> GradientTape:
        if self._open:
            raise TapeError(
                "GradientTape: got a second `with` block of a tape inside of its first, which "
                "would end the recording of both; leave one out, or make another gt.GradientTape()"
            )
        if self._used and not self.persistent:
            self._segment, self._used = None, False
            if self._block.modes:
                self._block.modes = self._new_modes()
        self._open, self._stopped = True, False
        if self._segment is not None:
            self._segment.active = True
        if self._block.modes:
            self._block.__enter__()
        return self

    def _left(self, leave: Callable[..., None] | None, *error: object) -> None:
        self._open = False
        self.stop()
        if len(error) == 3 and isinstance(error[1], TypeError | AttributeError):
            said = advice.of_objects(error[1])
            if said is not None:
                error[1].add_note(said)
        if leave is not None:
            leave(*error)

    if TYPE_CHECKING:

        def __exit__(self, *error: object) -> None: ...
    else:
        __exit__ = _Exit()

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
        state = state if self.enabled else "off"
        return f"<GradientTape, {state}, {len(self)} records>"

    @property
    def checkpoint_report(self) -> CheckpointReport | None:
        """What a checkpointing tape kept and computed again so far; None for other tapes."""
        policy = None if self._segment is None else self._segment.policy
        return None if policy is None else policy.report

    @property
    def schedule(self) -> Schedule | None:
        """How the last Jacobian was accumulated, and why; None if there was none yet."""
        return self._schedule

    def _level(self) -> Segment:
        # The level is assigned at the first watch: a tape made early but used inside a transform
        # has to be above it.
        if self._segment is None:
            policy = None if self._checkpoint is None else self._checkpoint.policy()
            self._segment = Segment(
                next_level(), "GradientTape", policy=policy, modes=self._block.modes
            )
            if self._lines:
                self._segment.note_lines()
        return self._segment

    def watch(self, value: Any) -> Any:
        """Return a tensor with the value of `value` that this tape records.

        Args:
            value: An array, tensor or float, or nested containers of them; of a module, its
                parameters are watched.

        Returns:
            A tensor, or the same containers of tensors.

        Raises:
            DTypeError: The value is not floating or complex.
            TapeError: Recording has ended, or the value belongs to a tape or transform that was
                started after this tape watched its first tensor.

        >>> net, tape = gt.nn.Linear(2, 1), gt.GradientTape()
        >>> with gt.no_grad():  # the parameters are leaves: else contexts would record, too
        ...     watched = tape.watch(net)
        ...     loss = gt.sum(watched(np.ones((3, 2), np.float32)))
        ...     tape.gradient(loss, watched).bias
        tensor([3.], dtype=float32)
        """
        if self._stopped:
            raise TapeError(
                "watch: this tape has stopped recording; watch inside of its `with` block, or make "
                "a new gt.GradientTape()"
            )
        if isinstance(value, Tensor | np.ndarray):
            watched = self._watched(primal(value, "watch", "the value"))
            note_places((watched,), (value,))
            return watched
        leaves, values, structure = as_primals(value, "watch", "the value")
        every = list(map(self._watched, values))
        note_places(every, leaves)
        return containers.unflatten(structure, every)

    def _watched(self, value: Any) -> Tensor:
        """One value as a leaf of this tape."""
        below = unshell(value)
        if not self.enabled:
            return _tensor(below)
        segment = self._level()
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
        leaves, structure = containers.flatten(sources)
        origins = [self._on_tape(source, "source") for source in leaves]
        ends = [self._on_tape(target, "target") for target in self._targets(targets)[0]]
        # The walk empties the list: nothing else may hold the cotangents.
        seeds = _seeds([end for end, _ in ends], output_gradients)
        scaler = getattr(self._amp, "scaler", None)
        if scaler is not None:
            seeds = scaler.scaled_seeds(seeds)
        roots = [(node, seeds.pop(0)) for _, node in ends]
        for _, node in origins:
            _check_order(node, [end for _, end in ends])
        block = tapes_in_force([end for end, _ in ends], ended=True) if WITH_MODES else None
        self._finish()
        sought, last = [node for _, node in origins], not self.persistent
        if block is None:
            found = walk(self._level(), roots, sources=sought, last=last)
        else:
            pull = functools.partial(walk, sources=sought, last=last)
            found = run_inside(block, pull, self._level(), roots)
        self._let_go([node for _, node in (*origins, *ends)])
        results = []
        for origin, node in origins:
            ct = found.get(node)
            results.append(lift(zeros_like(origin) if ct is None else ct, origin.value))
        if scaler is not None:
            results = scaler.unscaled_gradients(results, sources)
        return containers.unflatten(structure, list(map(_tensor, results)))

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
        block = tapes_in_force((end,), ended=True)
        self._finish()
        tangents = {start: unshell(tangent)}
        forward = functools.partial(push, cut=tangents, traced=is_traced(end))
        (result,) = _inside(block, forward, tangents, [node])
        self._let_go([start, node])
        result = zeros_like(end) if result is None else own(result, {id(tangent)})
        return _tensor(lift(result, end.value))

    def jacobian(self, targets: Any, sources: Any) -> Any:
        """Differentiate every element of the targets by every element of the sources.

        The tape chooses between forward and reverse mode, block by block, or cuts what was recorded
        where few numbers pass; `schedule` tells what it did and why.

        Args:
            targets: One tensor, or a container of them.
            sources: One tensor or a container: tensors returned by `watch`, or anything recorded.

        Returns:
            For a target of shape `t` and a source of shape `s` a Jacobian of shape `t + s`;
            containers nest as target, then source. Zeros where a target does not depend on a
            source.

        Raises:
            TapeError: As for `gradient`.
            DTypeError: A target or source is complex; use `gt.jacobian(f, holomorphic=True)`.

        >>> tape = gt.GradientTape()
        >>> x = tape.watch(np.array([1.0, 2.0]))
        >>> tape.jacobian(x**2, x)
        tensor([[2., 0.],
                [0., 4.]])
        """
        self._check_use("jacobian")
        leaves, structure = containers.flatten(sources)
        outs, out_structure = self._targets(targets)
        origins = [self._on_tape(source, "source", "jacobian") for source in leaves]
        ends = [self._on_tape(target, "target", "jacobian") for target in outs]
        for tensor, _ in (*origins, *ends):
            if tensor.dtype.kind == "c":
                raise DTypeError(
                    f"jacobian: got {aval_of(tensor)}, expected real targets and sources; use "
                    "gt.jacobian(f, holomorphic=True), or split it into real and imaginary parts"
                )
        for _, node in origins:
            _check_order(node, [end for _, end in ends], "jacobian")
        block = tapes_in_force([end for end, _ in ends], ended=True)
        self._finish()
        sweep = functools.partial(jacobian_blocks, traced=any(is_traced(end) for end, _ in ends))
        blocks, self._schedule = _inside(
            block,
            sweep,
            self._level(),
            [(node, aval_of(origin)) for origin, node in origins],
            [(node, aval_of(end)) for end, node in ends],
            self._scheduler or SchedulerConfig(),
        )
        self._let_go([node for _, node in (*origins, *ends)])
        taken: set[int] = set()
        rows = []
        for t, (end, _) in enumerate(ends):
            parts = [blocks.get((t, s)) for s in range(len(origins))]
            row = [
                np.zeros(end.shape + origin.shape, origin.dtype)
                if part is None
                else own(part, taken)
                for part, (origin, _) in zip(parts, origins, strict=True)
            ]
            pairs = zip(row, origins, strict=True)
            row = [_tensor(lift(part, origin.value)) for part, (origin, _) in pairs]
            rows.append(containers.unflatten(structure, row))
        return containers.unflatten(out_structure, rows)

    def records(self, targets: Any = None) -> TapeRecords:
        """What was recorded on the way to some targets, to iterate over and to print.

        Args:
            targets: One tensor, or a container of them; if not given, everything on this tape that
                is still alive. Records are found by a search through all Python objects then.

        Returns:
            The tensors that are watched, then the ops in the order in which they ran, each with the
            shapes and dtypes of its results, its operands, and the line of your code if the tape
            was made with `lines=True`. A record lives as long as its result, or something computed
            from that.

        Raises:
            TapeError: A target is not on this tape, or its records were freed: by `gradient` of a
                tape that is not persistent. Or no targets were given, and `gc.freeze` may hide
                records.

        >>> tape = gt.GradientTape(lines=True)
        >>> x = tape.watch(np.ones(3))
        >>> loss = np.sum(2.0 * np.exp(x))
        >>> print(tape.records(loss))
        #0  watch     float64[3]
        #1  exp       float64[3]  #0                              ...
        #2  multiply  float64[3]  2.0, #1                         ...
        #3  sum       float64[]   #2, axis=(0,), keepdims=False   ...
        >>> [record.op for record in tape.records(loss)]
        ['watch', 'exp', 'multiply', 'sum']
        """
        if targets is not None:
            self._check_enabled("records")
        if self._used and not self.persistent:
            raise TapeError(
                "records: this tape was used already, and has freed its records; ask before, or "
                "make it with gt.GradientTape(persistent=True)"
            )
        if targets is None:
            nodes = self._live_nodes()
        else:
            tensors = self._targets(targets)[0]
            nodes = [self._on_tape(target, "target", "records")[1] for target in tensors]
        return records_of(nodes, {} if self._segment is None else self._segment.lines)

    def __iter__(self) -> Iterator[TapeRecord]:
        """All records that are alive; see `records`."""
        return iter(self.records())

    def _live_nodes(self) -> list[Node]:
        if self._segment is None:
            return []
        found = release.live_nodes((self._segment,))
        if found is None:
            raise TapeError(
                "records: gc.freeze may hide records of this tape; give the targets, as in "
                "tape.records(loss), or call gc.unfreeze()"
            )
        return found

    def _check_enabled(self, what: str) -> None:
        if not self.enabled:
            raise TapeError(
                f"{what}: this tape was made with enabled=False and has recorded nothing; make it "
                "with enabled=True where gradients are needed"
            )

    def _check_use(self, what: str) -> None:
        self._check_enabled(what)
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
        segment = getattr(self, "_segment", None)  # a tape that was refused has none
        if segment is not None and segment.walkable:
            release.end((segment,), segment.label)

    def _targets(self, targets: Any) -> tuple[list[Any], Any]:
        """The leaves of targets; an array of tracked numbers is joined as a part of this tape."""
        segment = self._segment
        if segment is None or segment.active:
            return containers.flatten(targets)
        segment.active = True
        try:
            return containers.flatten(targets)
        finally:
            segment.active = False

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
            else "compute it from watched tensors, before the `with` block ends and outside of "
            "gt.no_grad()"
        )
        raise TapeError(f"{asked}: the {what} is not on this tape; {advice}")


refuse(GradientTape, "a tape", TAPE)


def _with_config(
    made_from: GradientTape | type[GradientTape],
    option: str,
    config: Any,
    kind: type | None = None,
) -> GradientTape:
    """A new tape with one option, and the others of the tape it is made from, if it is one."""
    name = f"with_{option}_config"
    if kind is None:
        _check_tape_config(name, option, config, "config")
    else:
        _check_config(name, "config", config, kind)
    if isinstance(made_from, type):
        return made_from(**{option: config})
    if made_from._segment is not None:
        raise TapeError(
            f"{name}: got a tape that watches something already, which the new tape would not "
            "know; configure it first, and watch with the tape that this returns"
        )
    return type(made_from)(**{**made_from._options(), option: config})


def _check_config(name: str, option: str, config: Any, kind: type) -> None:
    if not isinstance(config, kind):
        raise ArgumentError(
            f"{name}: got {a_type(config)} for {option}, expected a gt.{kind.__name__}"
        )


# The configs that give a tape modes, which later layers define.
_TAPE_CONFIGS = {"amp": "AmpConfig", "deterministic": "DeterministicConfig"}


def _check_tape_config(name: str, option: str, config: Any, given_as: str | None = None) -> None:
    if getattr(config, "configures", None) != option or isinstance(config, type):
        raise ArgumentError(
            f"{name}: got {a_type(config)} for {given_as or option}, expected a "
            f"gt.{_TAPE_CONFIGS[option]}"
        )


def _inside(block: Scope | None, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in the modes that what it differentiates was computed in."""
    return function(*args) if block is None else run_inside(block, function, *args)


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else Tensor(value)


def _check_order(source: Node, targets: list[Node], asked: str = "gradient") -> None:
    """Raise for a source that was made after every target: most likely they were swapped."""
    if not targets:
        raise TapeError(
            f"{asked}: got no target, expected a tensor or a container of them; did the function "
            "that computed it return it?"
        )
    if all(source.sequence > target.sequence for target in targets):
        raise TapeError(
            f"{asked}: the source was computed after the target and cannot influence it; the "
            "order is gradient(targets, sources), jacobian(targets, sources) and "
            "forward_gradient(source, target)"
        )


def _seeds(targets: list[Tensor], given: Any) -> list[Any]:
    """A cotangent per target: ones, or those the user gave."""
    if given is None:
        return [ones_like(target) for target in targets]
    seeds = containers.flatten(given)[0]
    if len(seeds) != len(targets):
        raise ShapeError(
            f"gradient: got {len(seeds)} output_gradients for {len(targets)} targets, expected "
            "one per target"
        )
    found = [
        unshell(checked(seed, target, "gradient", "output gradient", "target"))
        for seed, target in zip(seeds, targets, strict=True)
    ]
    for seed in found:
        cotangent_given("output_gradients have", seed)
    return found
