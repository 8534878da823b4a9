"""Determinism: results that are the same in every run, to the last bit, and a seed for all draws.

Compiled code and kernels add up in an order that depends on sizes alone. What is left is BLAS and
LAPACK, which are held to one thread while an op runs; draws, which get their words from generators
of a tape or block; and functions of users, which nobody can see into.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gradtape.backends import array_module
from gradtape.core.blas_threads import Claim, libraries, on_one_thread
from gradtape.core.finite import is_traced
from gradtape.core.lines import warn_user
from gradtape.core.op import Op
from gradtape.core.record import Record
from gradtape.core.state import Entry, Proceed, Proceeding, Scope, State, checked_flag, in_force
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import (
    ArgumentError,
    NondeterministicError,
    NondeterministicWarning,
    a_type,
)
from gradtape.ops.generator import DRAWING, Generator

Seed = int | Sequence[int]
_SMALLEST_NORMAL = np.float64(2.0**-1022)


class DeterministicMode(enum.Enum):
    """What a deterministic tape or block sees to.

    Attributes:
        Off: Nothing: the config has no effect.
        Seeded: Draws have the seed. Linear algebra uses all threads, so that its last digits depend
            on how many there are.
        Warn: As `Strict`, but what cannot be promised gives a warning.
        Strict: Results are the same in each run, whatever the number of threads, and what cannot be
            promised raises.

    >>> gt.DeterministicMode.Strict
    <DeterministicMode.Strict: 'strict'>
    """

    Off = "off"
    Seeded = "seeded"
    Warn = "warn"
    Strict = "strict"


@dataclass(frozen=True, kw_only=True)
class DeterministicConfig:
    """How a tape, or a block of `gt.deterministic`, makes results the same in every run.

    Bits are the same on one machine with one version of NumPy; another CPU may round differently.

    Args:
        mode: A member of `gt.DeterministicMode`; `Strict` if not given.
        global_seed: Where draws without a `generator=` begin, in each tape and block anew: a
            non-negative integer, or a sequence of them, such as `(seed, step)`. If not given, they
            come from the default generator, which `gt.manual_seed` seeds.
        operation_seeds: Whether each drawing function has a stream of its own, so that one more
            `dropout` does not change what `normal` draws. A dict gives some of them seeds by name:
            `{"dropout": 3}`.
        cudnn_deterministic: Taken for the sake of TenfloweRS's signature. No function of gradtape
            calls cuDNN, so both values mean the same.

    Raises:
        ArgumentError: An option is something else, a name is not that of a function that draws, or
            `operation_seeds=True` comes without a seed.

    >>> config = gt.DeterministicConfig(global_seed=7)
    >>> def run():
    ...     tape = gt.GradientTape(deterministic=config)
    ...     x = tape.watch(gt.ones(8))
    ...     return tape.gradient(gt.sum(gt.nn.dropout(x)), x)
    >>> bool(gt.all(run() == run()))
    True
    """

    configures: ClassVar[str] = "deterministic"

    mode: DeterministicMode = DeterministicMode.Strict
    global_seed: Seed | None = None
    operation_seeds: bool | Mapping[str, Seed] = field(default=False, hash=False)
    cudnn_deterministic: bool = True

    def __post_init__(self) -> None:
        name = "DeterministicConfig"
        if not isinstance(self.mode, DeterministicMode):
            names = ", ".join(f"gt.DeterministicMode.{each.name}" for each in DeterministicMode)
            raise ArgumentError(f"{name}: got {self.mode!r} for mode, expected one of {names}")
        checked_flag(name, "cudnn_deterministic", self.cudnn_deterministic)
        if self.global_seed is not None:
            Generator(self.global_seed)
        seeds = self.operation_seeds
        if not isinstance(seeds, Mapping):
            if checked_flag(name, "operation_seeds", seeds) and self.global_seed is None:
                raise ArgumentError(
                    f"{name}: operation_seeds=True needs a global_seed, from which the seeds follow"
                )
            return
        for function, seed in seeds.items():
            if function not in DRAWING:
                raise ArgumentError(
                    f"{name}: got {function!r} in operation_seeds, expected names of functions "
                    f"that draw: {', '.join(sorted(DRAWING))}"
                )
            Generator(seed)

    def tape_mode(self) -> Determinism | None:
        """The mode for one tape or block, whose generators are at their beginning; None if off."""
        return None if self.mode is DeterministicMode.Off else Determinism(self)


class Determinism:
    """The mode of one tape or block.

    Args:
        config: What it sees to.

    Attributes:
        exact: Whether it holds BLAS to one thread, and complains.
    """

    kind = "observing"
    family = "determinism"

    def __init__(self, config: DeterministicConfig) -> None:
        self._config, seeds = config, config.operation_seeds
        self._seeds = dict(seeds) if isinstance(seeds, Mapping) else {}
        self._own_streams = seeds is True
        self._global, self._generators = self._begun()
        # Graphs of compiled functions that were looked through.
        self._sure: dict[int, Any] = {}
        self.exact = config.mode in (DeterministicMode.Warn, DeterministicMode.Strict)
        if self.exact and _SMALLEST_NORMAL * 0.5 == 0:
            self._complain(
                "deterministic: this thread takes numbers below 2.2e-308 for 0, and others may "
                "not: a library that was loaded was compiled with -ffast-math; load it after "
                "gradtape's first call, or in another process"
            )

    # ---- draws -----------------------------------------------------------------------------

    def source(self, name: str, given: Generator | None, default: Generator) -> Generator:
        """The generator for a draw.

        Args:
            name: The name of the function that draws.
            given: The generator that the user gave it, if any.
            default: The one to draw from if nobody says anything else.

        Raises:
            NondeterministicError: It has no seed.
        """
        chosen = given or self._generators.get(name)
        if chosen is None and self._own_streams:
            assert self._global is not None  # the config asks for it
            chosen = self._generators[name] = self._global.fold_in(name)
        chosen = chosen or self._global or default
        if self.exact and not chosen.seeded:
            self._complain(
                f"{name}: draws from a generator without a seed; call gt.manual_seed(0) first, "
                "give a global_seed, or generator=gt.random.Generator(0)"
            )
        return chosen

    def state_dict(self) -> dict[str, Any]:
        """How far its generators have come, by their names, as arrays."""
        found = {f"operation.{name}": each for name, each in self._generators.items()}
        if self._global is not None:
            found["global"] = self._global
        return {name: each.state_dict()["state"] for name, each in found.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set its generators back; those that the state does not name begin anew."""
        whole, generators = self._begun()
        for name, words in state.items():
            function = name.removeprefix("operation.")
            if self._own_streams and function != name and function in DRAWING:
                generators.setdefault(function, Generator(0))
            generator = whole if name == "global" else generators.get(function)
            if generator is None:
                raise ArgumentError(
                    f"load_state_dict: got the state of {name!r}, for which this config has no "
                    "seed; load it into a block with the config that it was saved with"
                )
            generator.load_state_dict({"state": words})
        self._global, self._generators = whole, generators

    def _begun(self) -> tuple[Generator | None, dict[str, Generator]]:
        """Its generators at their beginning: for all draws, and for functions with a seed."""
        seed = self._config.global_seed
        whole = None if seed is None else Generator(seed)
        return whole, {name: Generator(each) for name, each in self._seeds.items()}

    # ---- ops -------------------------------------------------------------------------------

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        """Run an op with one thread for BLAS, if it is one that repeats itself."""
        if not self.exact:
            return proceed(op, args, params)
        if any(map(is_traced, args)):
            self._complain(
                f"{op.name}: got a tape with a config, or a block of gt.deterministic, inside of a "
                "compiled function, where no threads can be held; call the function in such a block"
            )
        if op.unsure is not None:
            self._complain(f"{op.name} {op.unsure}")
        if op.graph is not None and id(op.graph) not in self._sure:
            unsure = [inner for inner in _ops_inside(op) if inner.unsure is not None]
            for inner in unsure:
                self._complain(f"{inner.name}, in the compiled {op.name}, {inner.unsure}")
            if not unsure:
                self._sure[id(op.graph)] = op.graph
        # Elementwise ops call no BLAS, and are too many to ask for it.
        if op.kind == "elementwise":
            return proceed(op, args, params)
        if array_module(*map(_raw, args)) is not np:
            self._complain(
                f"{op.name}: got CuPy's arrays, whose functions add up elements in an order that "
                "nobody fixes; compute with NumPy's arrays"
            )
        return self.alone(proceed, op, args, params)

    def pull(self, _record: Record, proceed: Proceeding) -> Any:
        """Apply the rules of a record with one thread for BLAS."""
        return self.alone(proceed)

    def push(self, _record: Record, _given: Sequence[Any], proceed: Proceeding) -> Any:
        """Push tangents along a record with one thread for BLAS."""
        return self.alone(proceed)

    def alone(self, function: Any, *args: Any) -> Any:
        """Call a function with one thread for BLAS, if the mode is one that sees to that."""
        if not self.exact:
            return function(*args)
        if not libraries():
            self._complain(
                "deterministic: the number of threads of this NumPy's or SciPy's linear algebra "
                "cannot be set (that of OpenBLAS, MKL, BLIS and FlexiBLAS can); install both from "
                "PyPI"
            )
        return on_one_thread(function, *args)

    def _complain(self, text: str) -> None:
        if self._config.mode is DeterministicMode.Warn:
            warn_user(text, NondeterministicWarning)
        else:
            raise NondeterministicError(f"{text}; or allow it with gt.DeterministicMode.Warn")


def _raw(value: Any) -> Any:
    return innermost(value, show=True) if isinstance(value, Tensor) else value


def _ops_inside(op: Op) -> Iterator[Op]:
    """The ops in the graph of a compiled function, and in those of its loops and branches."""
    graphs = [op.graph]
    while graphs:
        for node in graphs.pop().nodes:
            yield node.op
            for part in (node.op.graph, *node.params.values()):
                parts = part if isinstance(part, tuple | list) else (part,)
                graphs += [each for each in parts if hasattr(each, "nodes")]


class deterministic(Scope):  # noqa: N801 - used like a function, as no_grad is
    """Make what is computed in a block the same in every run, whatever the number of threads.

    BLAS and LAPACK are held to one thread while an op needs them; draws have the seed, also those
    of compiled functions; what cannot be promised raises. Used as a decorator, each call of the
    function begins with the seed. A tape with a config of its own is
    `gt.GradientTape(deterministic=…)`.

    Args:
        config: A `gt.DeterministicConfig`.
        **options: Its options, if it is not given.

    Raises:
        ArgumentError: It is something else, or both are given.
        NondeterministicError: In the block: something cannot be promised.

    >>> def draw():
    ...     with gt.deterministic(global_seed=7):
    ...         return gt.randn(2) @ gt.randn(2)
    >>> bool(draw() == draw())
    True
    >>> with gt.deterministic():
    ...     gt.randn(2, generator=gt.random.Generator())
    Traceback (most recent call last):
        ...
    gradtape.errors.NondeterministicError: randn: draws from a generator without a seed; ...
    """

    def __init__(self, config: DeterministicConfig | None = None, /, **options: Any) -> None:
        if config is None:
            try:
                config = DeterministicConfig(**options)
            except TypeError as error:
                raise ArgumentError(f"deterministic: {str(error).rpartition(') ')[2]}") from None
        elif options or not isinstance(config, DeterministicConfig):
            got = f"a config and {', '.join(options)}" if options else a_type(config)
            raise ArgumentError(
                f"deterministic: got {got}, expected a gt.DeterministicConfig, or its options"
            )
        self._config = config
        self._mode = config.tape_mode()
        # For each use of the block; that ops find one thread already saves them most of the time.
        self._claims: dict[Entry, Claim] = {}

    def state_dict(self) -> dict[str, Any]:
        """How far the block's own generators have come, as arrays by name, for `gt.save`.

        >>> with gt.deterministic(global_seed=7) as block:
        ...     _ = gt.randn(3)
        ...     saved = block.state_dict()
        ...     x = gt.randn(3)
        >>> with gt.deterministic(global_seed=7) as block:
        ...     block.load_state_dict(saved)
        ...     bool(gt.all(x == gt.randn(3)))
        True
        """
        return {} if self._mode is None else self._mode.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the draws where a block with the same config was.

        Args:
            state: What `state_dict` returned, in this process or another one.

        Raises:
            ArgumentError: It is of a block with another config; this one stays as it is.
        """
        if self._mode is not None:
            self._mode.load_state_dict(state)
        elif state:
            raise ArgumentError("load_state_dict: got a state for a block that is off")

    def again(self) -> deterministic:
        return type(self)(self._config)

    def entering(self, entry: Entry) -> None:
        if self._mode is not None and self._mode.exact:
            claim = self._claims[entry] = Claim()
            claim.take()

    def left(self, entry: Entry, *error: object) -> None:
        claim = self._claims.pop(entry, None)
        if claim is not None:
            claim.leave()

    def change(self, state: State, before: State | None = None) -> State:
        if self._mode is None:
            return state.derive()
        return state.derive(modes=in_force((self._mode, *state.modes)))
