"""The op record: everything gradtape knows about one operation, in one place.

An op is defined once, in a file of `ops/`, by a constructor for its class (`core.define`). The
names of a derivative rule's parameters tell what it reads: rules are called
`rule(ct, out, *inputs, **params)`, and a parameter whose name starts with an underscore is not
read. Records keep only what is read; an unread value arrives as its `Aval` (shape and dtype).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal

from gradtape.core.aval import Aval
from gradtape.core.lowering import Lowering, Terms, Whole
from gradtape.core.small_floats import infer_narrow
from gradtape.errors import GradtapeError, NotDifferentiableError
from gradtape.locks import load

Rule = Callable[..., Any]
# Prefix of the names of modules that define ops.
_OPS = "gradtape.ops."


class Zero:
    """A rule for a derivative that is zero wherever it exists (floor, sign)."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __call__(self, ct: Any, _out: Any, *_inputs: Any, **_params: Any) -> None:
        """Return None, which the walk takes for a zero cotangent."""


class NotDifferentiable:
    """A rule for a derivative that does not exist: raises as soon as it is reached."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __call__(self, ct: Any, _out: Any, *_inputs: Any, **_params: Any) -> None:
        raise NotDifferentiableError(f"{self.why}; detach() the argument if no gradient is meant")


# Parameters of planewise ops: an entry for each of the last axes, None for one that is left alone.
BY_AXIS = ("windows", "maps", "sizes")


# The positions of all operands, however many there are.
EVERY = range(sys.maxsize)


class Facts:
    """Properties that every call of an op has.

    Attributes:
        rearranges: Whether each element of the result is an element of an operand.
        commutes: The kinds of dtype, as in "biuf", for which two operands can change places without
            changing a bit of a result of that kind.
        layout: How the result is laid out in memory: as a "view" of the first operand, as the
            "same" array, as a "copy" of it, or with axes in the order they have in the operands
            ("kept", as for all elementwise ops and reductions). None: C order, last axis fastest.
        carries: The positions of operands that are not finite only if the result is not finite
            either, or does not depend on them.
        python: The Python operator that does the same to Python numbers, such as `operator.add`.
        product: Whether it is linear in each operand that has derivatives, as products are.
        divisors: The positions of operands that it divides by, as `x / y` and `solve(a, b)` do: the
            first result y solves an equation b = m(a, y) that is linear in y, and affine in these
            operands a. The JVP by a reads a and y, and no other operand.
        reads: What an element of the results depends on, if no lowering says it: on the element at
            its "own" place, on those along the parameter "axis", a number for all of its matrix in
            a stack whose last axes, so many, belong to a matrix, `Terms`, or `Whole`. None: on
            everything.
        samples: The number of operands, the first ones, whose first axis is that of samples, which
            are computed separately. The first axis of the result is that of samples too, or else
            the result is a sum over them (`sums_samples`).
    """

    __slots__ = (
        "carries", "commutes", "divisors", "layout", "product", "python", "reads", "rearranges",
        "samples", "sums_samples",
    )  # fmt: skip

    def __init__(
        self,
        *,
        rearranges: bool = False,
        commutes: str = "",
        layout: Literal["view", "same", "copy", "kept"] | None = None,
        carries: range | tuple[int, ...] = (),
        python: Callable[..., Any] | None = None,
        product: bool = False,
        divisors: tuple[int, ...] = (),
        reads: Literal["own", "axis"] | int | Terms | Whole | None = None,
        samples: int = 0,
        sums_samples: bool = False,
    ) -> None:
        self.rearranges = rearranges
        self.commutes = commutes
        self.layout = layout
        self.carries = carries
        self.python = python
        self.product = product
        self.divisors = divisors
        self.reads = reads
        self.samples = samples
        self.sums_samples = sums_samples


NO_FACTS = Facts()


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
            in `BY_AXIS` have an entry for each of them), linear, contraction, general; those of
            users' functions are graph, custom and host. Further
            inputs of a reduction, axiswise or planewise op have as many axes as the first one.
        outputs: Number of results; 1 is the result itself, more are a tuple, None is a tuple whose
            length the arguments decide.
        aliases: Whether a result may share memory with the first input.
        facts: Properties that graph passes and Taylor mode rely on.
        effect: Its side effect ("random", "assertion", "host"), or None.
        unsure: Why equal operands may give other results in another run, and what to do about it;
            None if they cannot.
        identity: What tells it from other ops of its name, where ops are made at each call of a
            user's function; None if the name does.
        graph: The graph of a compiled function; None for other ops.
        recorded: `recorded(params)`, for an op that also returns values for the backward pass when
            it is recorded: the parameters to run it with then, and how many results are the user's.
        pushed: `pushed(tangents, *inputs, **params)`, for an op whose results and tangents are
            computed together: both, where `jvp` gives the tangents alone.
        lower: How the compiler generates code for it (see `core.lowering`); None runs `evaluate`.
        composed: `composed(*arrays, **params)`, the forward made of other ops that have kernels,
            for large arrays; returns `NotImplemented` where it does not fit.
        heavy: `heavy(*arrays, **params)`, whether the forward is so much work that native code pays
            also for small arrays, as with convolutions; None where the number of elements tells.
        fast: The forward without `xp`, for the fast path of elementwise ops.
        partials: For elementwise ops: per input the linear map from its change to the result's.
        flat_vjps: The rules the walk uses for records of the fast path, where all inputs have the
            shape and the real dtype of the result: the partials if there are any.
        careful: `vjps` that give 0 for 0·∞ at values that are not finite (see `core.settle`).
        careful_flat: `flat_vjps`, likewise; None if they need no care.
        careful_jvp: `jvp`, likewise.
    """

    __slots__ = (
        "_infer", "_kept", "aliases", "batch", "careful", "careful_flat", "careful_jvp", "composed",
        "effect", "evaluate", "facts", "fast", "flat_vjps", "graph", "heavy", "identity", "jvp",
        "kind", "lower", "name", "outputs", "partials", "pushed", "recorded", "unsure", "vjp_all",
        "vjp_each", "vjps",
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
        facts: Facts = NO_FACTS,
        effect: str | None = None,
        unsure: str | None = None,
        identity: tuple[Any, ...] | None = None,
        graph: Any = None,
        recorded: Callable[[dict[str, Any]], tuple[dict[str, Any], int]] | None = None,
        pushed: Callable[..., tuple[tuple[Any, ...], tuple[Any, ...]]] | None = None,
        lower: Lowering | None = None,
        composed: Callable[..., Any] | None = None,
        heavy: Callable[..., bool] | None = None,
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
        self.facts = facts
        self.effect = effect
        self.unsure = unsure
        self.identity = identity
        self.graph = graph
        self.recorded = recorded
        self.pushed = pushed
        self.lower = lower
        self.composed = composed
        self.heavy = heavy
        self.fast = fast
        self.partials = partials
        self.flat_vjps = partials or vjps
        self.careful = vjps
        self.careful_flat: tuple[Rule, ...] | None = None
        self.careful_jvp: Rule | None = None
        self._kept: dict[tuple[bool, ...], tuple[bool, ...]] = {}

    def infer(self, /, *avals: Aval, **params: Any) -> Any:
        """The abstract result, with symbolic sizes allowed."""
        for aval in avals:
            # What hands its first operand on does so in any dtype, whatever the others are.
            if aval.dtype.kind == "V" and not (self.aliases and self._infer is infer_like):
                return infer_narrow(self.kind, self._infer, avals, params)
        return self._infer(*avals, **params)

    @property
    def tracked(self) -> bool:
        """Whether results carry derivatives at all (comparisons and argmax do not)."""
        return bool(self.vjps or self.vjp_each or self.vjp_all)

    def keeps(self, wanted: tuple[bool, ...]) -> tuple[bool, ...]:
        """Flags for (out, *inputs): whether a record keeps each, given which inputs are tracked."""
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
    """Positions among (out, *inputs) that `rule` reads, according to its parameter names.

    A starred parameter at position n reads all inputs from there on, which is given as -n. A rule
    can override this with an attribute `reads`: if it reads an input only when there is a tangent,
    as a product does, the rules of the tracked inputs already keep what it needs.
    """
    if isinstance(rule, Zero | NotDifferentiable):
        return frozenset()
    declared: frozenset[int] | None = getattr(rule, "reads", None)
    if declared is not None:
        return declared
    # Reading the code object is a hundred times faster than inspect.signature, at every import.
    method = inspect.ismethod(rule)
    code = rule.__code__
    names = code.co_varnames[skip + method : code.co_argcount]
    found = {position for position, name in enumerate(names) if not name.startswith("_")}
    if code.co_flags & inspect.CO_VARARGS:
        starred = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        if not starred.startswith("_"):
            found.add(-len(names))
    return frozenset(found)


class Registry:
    """All ops by name; only modules of `gradtape.ops` add to it, while they are imported.

    The package does not look ops up here: code that needs one imports it. This is the list that
    tests and documents go through, and it loads every module of `ops` first.
    """

    def __init__(self) -> None:
        self._ops: dict[str, Op] = {}
        # The globals of the module that registered each op.
        self._homes: dict[str, dict[str, Any]] = {}

    def add(self, op: Op) -> Op:
        """Register an op under its name."""
        home, known = _module_globals(), self._homes.get(op.name)
        if not home["__name__"].startswith(_OPS):
            raise GradtapeError(f"{op.name}: the op registry is closed; use gt.custom_vjp")
        # A module whose import was interrupted is run again from its beginning, with new globals.
        again = known is not None and known is not home and known["__name__"] == home["__name__"]
        if known is not None and not again:
            raise GradtapeError(f"{op.name}: there is an op of this name already")
        self._ops[op.name], self._homes[op.name] = op, home
        return op

    def __iter__(self) -> Iterator[Op]:
        for module in load("pkgutil").walk_packages(load(_OPS[:-1]).__path__, _OPS):
            load(module.name)
        return iter(self._ops.values())

    def home(self, op: Op) -> str:
        """The module that defines an op; empty for ops of users' functions."""
        known = self._ops.get(op.name) is op
        return self._homes[op.name]["__name__"] if known else ""

    def __contains__(self, name: str) -> bool:
        """Whether an op of this name is loaded."""
        return name in self._ops

    def __getitem__(self, name: str) -> Op:
        return self._ops[name] if name in self._ops else {op.name: op for op in self}[name]

    def named(self, name: str) -> Op | None:
        """The op that a file names, or None; only files tell ops by their names."""
        known = self._ops.get(name)
        return {op.name: op for op in self}.get(name) if known is None else known


def _module_globals() -> dict[str, Any]:
    """The globals of the module that is being imported."""
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_globals


registry = Registry()


def op_of(function: Any) -> Op:
    """The op that a function runs, as noted by its constructor."""
    return function.op  # type: ignore[no-any-return]


def infer_like(first: Aval, *_others: Aval, **_params: Any) -> Aval:
    """Shape rule of ops whose result has the shape and dtype of their first input."""
    return first
