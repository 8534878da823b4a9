"""The op record: everything gradtape knows about one operation, in one place.

An op is defined once, in a file of `ops/`, by a constructor for its class (`core.define`). What a
derivative rule reads is told by the names of its parameters: rules are called
`rule(ct, out, *inputs, **params)`, and a parameter whose name starts with an underscore is not
read. Records keep only what is read; an unread value arrives as its `Aval` (shape and dtype).
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from gradtape.core.aval import Aval
from gradtape.core.lazy import lazy
from gradtape.core.lowering import Lowering
from gradtape.core.narrow import infer_narrow
from gradtape.errors import GradtapeError, NotDifferentiableError
from gradtape.locks import load, loading

Rule = Callable[..., Any]


class Zero:
    """A rule for a derivative that is zero wherever it exists (floor, sign)."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __call__(self, ct: Any, _out: Any, *_inputs: Any, **_params: Any) -> None:
        """Nothing flows back: the walk takes None for a zero cotangent."""


class NotDifferentiable:
    """A rule for a derivative that does not exist: raises as soon as it is reached."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __call__(self, ct: Any, _out: Any, *_inputs: Any, **_params: Any) -> None:
        raise NotDifferentiableError(f"{self.why}; detach() the argument if no gradient is meant")


# Parameters of planewise ops: an entry for each of the last axes, None for one that is left alone.
BY_AXIS = ("windows", "maps", "sizes")


class Op:
    """One operation with its forward, its shape rule and its derivative rules.

    Attributes:
        name: The name users know it by.
        evaluate: `evaluate(xp, *arrays, **params)`, the forward on raw arrays of module `xp`.
        vjps: One rule per input, `rule(ct, out, *inputs, **params)`; empty if nothing is tracked.
        vjp_each: For a variable number of inputs: `rule(i, ct, out, *inputs, **params)`.
        vjp_all: A rule for all inputs at once, where they share work:
            `rule(wanted, ct, out, *inputs, **params)` with a bool per input; a cotangent per input.
        jvp: `jvp(tangents, out, *inputs, **params)`; an input without tangent has None.
        batch: `batch(op, axes, args, params)` with one batch axis or None per argument, returning
            the batched result and its batch axis (or a tuple of each).
        kind: The class of op: elementwise, reduction, axiswise (works along its parameter `axis`
            and gives as many elements), planewise (works on its last axes; its parameters that are
            in `BY_AXIS` have an entry for each of them), linear, contraction, general. Further
            inputs of a reduction, axiswise or planewise op have as many axes as the first one.
        outputs: Number of results; 1 is the result itself, more are a tuple, None is a tuple whose
            length the arguments decide.
        aliases: Whether a result may share memory with the first input.
        effect: What it does besides computing ("random", "assertion"), or None.
        lower: How the compiler generates code for it (see `core.lowering`); None runs `evaluate`.
        fast: The forward without `xp`, for the fast path of elementwise ops.
        partials: Of elementwise ops: per input the linear map from its change to the result's.
        flat_vjps: The rules the walk uses for records of the fast path, where all inputs have the
            shape and the real dtype of the result: the partials if there are any.
        careful: `vjps` that give 0 for 0·∞ at values that are not finite (see `core.settle`).
        careful_flat: `flat_vjps`, likewise; None if they need no care.
        careful_jvp: `jvp`, likewise.
    """

    __slots__ = (
        "_infer", "_kept", "aliases", "batch", "careful", "careful_flat", "careful_jvp", "effect",
        "evaluate", "fast", "flat_vjps", "jvp", "kind", "lower", "name", "outputs", "partials",
        "vjp_all", "vjp_each", "vjps",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        infer: Callable[..., Any],
        *,
        vjps: tuple[Rule, ...] = (),
        vjp_each: Rule | None = None,
        vjp_all: Rule | None = None,
        jvp: Rule | None = None,
        batch: Callable[..., Any] | None = None,
        kind: str = "general",
        outputs: int | None = 1,
        aliases: bool = False,
        effect: str | None = None,
        lower: Lowering | None = None,
        fast: Callable[..., Any] | None = None,
        partials: tuple[Rule, ...] = (),
    ) -> None:
        self.name = name
        self.evaluate = evaluate
        self._infer = infer
        self.vjps = vjps
        self.vjp_each = vjp_each
        self.vjp_all = vjp_all
        self.jvp = jvp
        self.batch = batch
        self.kind = kind
        self.outputs = outputs
        self.aliases = aliases
        self.effect = effect
        self.lower = lower
        self.fast = fast
        self.partials = partials
        self.flat_vjps = partials or vjps
        self.careful = vjps
        self.careful_flat: tuple[Rule, ...] | None = None
        self.careful_jvp: Rule | None = None
        self._kept: dict[tuple[bool, ...], tuple[bool, ...]] = {}

    def infer(self, *avals: Aval, **params: Any) -> Any:
        """The abstract result, with symbolic sizes allowed."""
        for aval in avals:
            if aval.dtype.kind == "V":
                return infer_narrow(self.kind, self._infer, avals, params)
        return self._infer(*avals, **params)

    @property
    def tracked(self) -> bool:
        """Whether results carry derivatives at all (comparisons and argmax do not)."""
        return bool(self.vjps or self.vjp_each or self.vjp_all)

    def keeps(self, wanted: tuple[bool, ...]) -> tuple[bool, ...]:
        """Which of (out, *inputs) a record keeps, given which inputs are tracked."""
        kept = self._kept.get(wanted)
        if kept is None:
            if self.vjp_all is not None:
                reads = set(rule_reads(self.vjp_all, skip=2))
            elif self.vjp_each is not None:
                reads = set(rule_reads(self.vjp_each, skip=2))
            else:
                rules = zip(self.vjps, wanted, strict=True)
                reads = {i for rule, tracked in rules if tracked for i in rule_reads(rule)}
            # Partials serve both directions; other ops may read other values going forward.
            if self.jvp is not None and not self.partials:
                reads |= rule_reads(self.jvp)
            starts = [-i for i in reads if i < 0]
            kept = tuple(
                i in reads or any(i >= start for start in starts) for i in range(len(wanted) + 1)
            )
            self._kept[wanted] = kept
        return kept

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def rule_reads(rule: Rule, skip: int = 1) -> frozenset[int]:
    """Positions among (out, *inputs) that `rule` reads, told by the names of its parameters.

    A starred parameter at position n reads all inputs from there on, which is given as -n. A rule
    can say otherwise with an attribute `reads`: where it reads an input only for a tangent that is
    there, as a product does, the rules of the tracked inputs keep what it needs.
    """
    if isinstance(rule, Zero | NotDifferentiable):
        return frozenset()
    declared: frozenset[int] | None = getattr(rule, "reads", None)
    if declared is not None:
        return declared
    # The code object tells it a hundred times faster than inspect.signature, at every import.
    method = inspect.ismethod(rule)
    code = rule.__code__
    names = code.co_varnames[skip + method : code.co_argcount]
    found = {position for position, name in enumerate(names) if not name.startswith("_")}
    if code.co_flags & inspect.CO_VARARGS:
        starred = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        if not starred.startswith("_"):
            found.add(-len(names))
    return frozenset(found)


class NotLoadedError(Exception):
    """A module is not there yet."""


class Registry:
    """All ops by name, and the functions that answer for NumPy's; closed but while `ops` loads.

    Families that not every program uses are packages of `ops` that wait in `deferred`: a function
    looked for and not found loads them, in order, until it is there.
    """

    def __init__(self) -> None:
        self._ops: dict[str, Op] = {}
        # The globals of the module that registered each op.
        self._homes: dict[str, dict[str, Any]] = {}
        self._opened = 0
        self.deferred: list[str] = []
        # Public gradtape functions by name: what tensor methods and rules call.
        self.functions: dict[str, Callable[..., Any]] = _Functions(self)
        # NumPy or SciPy function -> gradtape function.
        self.replacements: dict[Any, Callable[..., Any]] = {}
        # Computes elementwise ops on large arrays, see `core.large`; made by `provider`.
        self.provider: Callable[[], Any] = lambda: None

    @lazy
    def kernels(self) -> Any:
        """What computes elementwise ops on large arrays; None for NumPy.

        Raises:
            NotLoadedError: This thread is in the middle of loading something, interrupted by a
                signal handler or the garbage collector.
        """
        with loading() as half_loaded:
            if half_loaded:
                raise NotLoadedError
            return self.provider()

    @property
    def loaded_kernels(self) -> Any:
        """The same if it was needed before; None otherwise."""
        return vars(self).get("kernels")

    def add(self, op: Op) -> Op:
        """Register an op under its name."""
        if not self._opened:
            raise GradtapeError(f"{op.name}: the op registry is closed; use gt.custom_vjp")
        home, known = _module_globals(), self._homes.get(op.name)
        # A module whose import was interrupted is run again from its beginning, with new globals.
        again = known is not None and known is not home and known["__name__"] == home["__name__"]
        if known is not None and not again:
            raise GradtapeError(f"{op.name}: there is an op of this name already")
        self._ops[op.name], self._homes[op.name] = op, home
        return op

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Take ops inside of the block, in which a package of ops imports its modules."""
        self._opened += 1
        try:
            yield
        finally:
            self._opened -= 1

    def load(self) -> bool:
        """Load the next family; False if all are there."""
        package = next(iter(self.deferred), None)
        if package is None:
            return False
        load(package)
        self.deferred = [other for other in self.deferred if other != package]
        return True

    def replacement(self, original: Any) -> Callable[..., Any] | None:
        """The gradtape function that answers for one of NumPy or SciPy, if there is one."""
        while (found := self.replacements.get(original)) is None and self.load():
            pass
        return found

    def __iter__(self) -> Iterator[Op]:
        while self.load():
            pass
        return iter(self._ops.values())

    def __contains__(self, name: str) -> bool:
        """Whether an op of this name is loaded."""
        return name in self._ops

    def __getitem__(self, name: str) -> Op:
        while name not in self._ops and self.load():
            pass
        return self._ops[name]


def _module_globals() -> dict[str, Any]:
    """The globals of the module that is being imported."""
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_globals


class _Functions(dict[str, Callable[..., Any]]):
    """Functions by name, which loads families for a name that is missing."""

    def __init__(self, registry: Registry) -> None:
        super().__init__()
        self._registry = registry

    def __missing__(self, name: str) -> Callable[..., Any]:
        while name not in self:
            if not self._registry.load():
                raise KeyError(name)
        return self[name]


registry = Registry()


def infer_like(first: Aval, *_others: Aval, **_params: Any) -> Aval:
    """Shape rule of ops whose result has the shape and dtype of their first input."""
    return first
