"""Constructors by class of op: from the least text, the rest of the op record is derived.

- `elementwise`: states one linear map per argument, `ct ↦ ct·∂`. It serves as VJP and as JVP
  (for complex numbers with its conjugate); un-broadcasting, casts and batching follow.
- `untracked`: elementwise results without derivatives (comparisons).
- `linear`: states only the transpose; its JVP is the op itself.
- `general`: states what cannot be derived.

Each returns the function that runs the op on anything: arrays in, arrays out; tensors in, tensors
out. Rules are written with operators and such functions only, so that they run at NumPy speed on
arrays and are themselves recorded, batched or traced on tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.batching import batch_elementwise
from gradtape.core.broadcasting import (
    broadcast_sizes as broadcast_sizes,
    broadcast_tangent as broadcast_tangent,
    unbroadcast as unbroadcast,
)
from gradtape.core.call import call, call_operator
from gradtape.core.evaluate import sum_of_terms
from gradtape.core.fast import fast_binary, fast_params, fast_reflected, fast_unary
from gradtape.core.lowering import Lowering, Pointwise
from gradtape.core.needed_ops import needed
from gradtape.core.nested import Alias
from gradtape.core.op import NO_FACTS, Facts, Op, Rule, registry, rule_reads
from gradtape.core.settle import guarded, settled_tangent
from gradtape.core.tensor import Tensor, innermost

F = TypeVar("F", bound=Callable[..., Any])


# ---- elementwise --------------------------------------------------------------------------------


def elementwise(
    forward: Callable[..., Any],
    *partials: Rule,
    operator: str | None = None,
    facts: Facts = NO_FACTS,
    fast: Callable[..., Any] | None = None,
    vjps: Sequence[Rule] = (),
    jvp: Rule | None = None,
    lower: Callable[..., Any] | Lowering | None = None,
    bounded: bool = False,
) -> Callable[[F], F]:
    """Define an elementwise op from the declaration of its public function.

    Args:
        forward: A NumPy ufunc, or `forward(xp, *arrays)`.
        *partials: Per argument `partial(ct, out, *inputs)`, linear in `ct`: `ct` times the partial
            derivative. None of them: the result is untracked.
        operator: The operator it implements: "add" installs `__add__` and `__radd__`.
        facts: What passes over graphs rely on (see `core.op.Facts`).
        fast: What computes it on raw arrays, if there is something faster than `forward`.
        vjps: Rules where the op is not complex-linear, so that they differ from the partials.
        jvp: The same for forward mode.
        lower: The expression for one element (see `core.scalar`), or another form of lowering.
        bounded: Whether partials are finite also where values are not: those of a choice are.
    """
    ufunc = isinstance(forward, np.ufunc)
    evaluate = functools.partial(_run_ufunc, forward) if ufunc else forward
    compute = fast or (forward if ufunc else functools.partial(forward, np))

    def define(declared: F) -> F:
        name = declared.__name__
        op = registry.add(
            Op(
                name=name,
                evaluate=evaluate,
                infer=functools.partial(_infer_elementwise, evaluate, facts.python is not None),
                vjps=tuple(vjps) or tuple(map(vjp_of_partial, partials, range(len(partials)))),
                jvp=jvp or (_jvp(partials) if partials else None),
                batch=batch_elementwise,
                kind="elementwise",
                facts=facts,
                lower=pointwise(lower),
                fast=compute,
                partials=partials,
            )
        )
        if not bounded:
            _make_careful(op, partials, vjps)
        arity = declared.__code__.co_argcount
        function: Callable[..., Any]
        if not partials or arity > 2:
            function = _plain_function(op)
        else:
            function = fast_unary(op) if arity == 1 else fast_binary(op)
        function = functools.update_wrapper(function, declared)
        function.op = op  # type: ignore[attr-defined]
        if operator is not None:
            install_operator(operator, op, function)
        return function  # type: ignore[return-value]

    return define


def _make_careful(op: Op, partials: Sequence[Rule], vjps: Sequence[Rule]) -> None:
    """Give an elementwise op rules that look at values which are not finite."""
    if all(not rule_reads(rule) for rule in vjps or partials):
        return
    flat = tuple(guarded(op, partial, i) for i, partial in enumerate(partials))
    if vjps or not partials:
        op.careful = tuple(guarded(op, rule, i) for i, rule in enumerate(op.vjps))
    else:
        op.careful = tuple(map(vjp_of_partial, flat, range(len(flat))))
    op.careful_flat = flat or op.careful
    op.careful_jvp = functools.partial(settled_tangent, op)


def pointwise(lower: Callable[..., Any] | Lowering | None) -> Lowering | None:
    """The lowering of an elementwise op: a plain function is the expression for one element."""
    return lower if lower is None or isinstance(lower, Lowering) else Pointwise(lower)


def _run_ufunc(ufunc: Callable[..., Any], _xp: Any, *arrays: Any) -> Any:
    # CuPy's arrays answer NumPy's ufuncs themselves.
    return ufunc(*arrays)


def _plain_function(op: Op) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        return call(op, args, {})

    return function


def _infer_elementwise(evaluate: Callable[..., Any], operator: bool, *avals: Aval) -> Aval:
    dtype = _result_dtype(evaluate, tuple((aval.dtype, aval.weak) for aval in avals))
    # What Python's operators make of Python's numbers is a number as weak as they are.
    weak = operator and dtype.kind in "ifc" and all(aval.weak for aval in avals)
    return Aval(broadcast_sizes(*(aval.shape for aval in avals)), dtype, weak=weak)


@functools.cache
def _result_dtype(evaluate: Callable[..., Any], kinds: tuple[Any, ...]) -> np.dtype[Any]:
    """What NumPy gives on empty arrays of these dtypes, and numbers: its promotion, not a copy."""
    numbers = all(weak for _, weak in kinds)
    samples = (
        dtype.type(1).item() if weak and not numbers else np.empty(0, dtype)
        for dtype, weak in kinds
    )
    return evaluate(np, *samples).dtype  # type: ignore[no-any-return]


def vjp_of_partial(partial: Rule, argument: int = 0) -> Rule:
    """The full rule of one argument: conjugated for complex numbers, summed where broadcast."""

    def vjp(ct: Any, out: Any, *inputs: Any, **params: Any) -> Any:
        if ct.dtype.kind == "c":
            result = partial(needed.conj(ct), out, *inputs, **params)
            result = None if result is None else needed.conj(result)
        else:
            result = partial(ct, out, *inputs, **params)
        return None if result is None else unbroadcast(result, inputs[argument].shape)

    vjp.reads = rule_reads(partial)  # type: ignore[attr-defined]
    return vjp


def _jvp(partials: Sequence[Rule]) -> Rule:
    """The sum of the partials applied to the tangents."""

    def jvp(tangents: Sequence[Any], out: Any, *inputs: Any) -> Any:
        total = sum_of_terms(partials, tangents, out, inputs)
        return total if total is None else broadcast_tangent(total, out)

    jvp.reads = frozenset().union(*(rule_reads(p) for p in partials))  # type: ignore[attr-defined]
    return jvp


def install_operator(operator: str, op: Op, function: Callable[..., Any]) -> None:
    """Make `op` a tensor's operator, with its reflected and augmented forms."""
    if len(op.partials) == 1:
        setattr(Tensor, f"__{operator}__", fast_unary(op))
        return

    def augmented(x: Tensor, y: Any) -> Tensor:
        return x.augment(function, y)

    setattr(Tensor, f"__{operator}__", fast_binary(op, call_operator))
    setattr(Tensor, f"__r{operator}__", fast_reflected(op))
    setattr(Tensor, f"__i{operator}__", augmented)


# ---- other classes of op ------------------------------------------------------------------------


def linear(
    name: str,
    evaluate: Callable[..., Any],
    transpose: Rule,
    *,
    infer: Callable[..., Any],
    batch: Callable[..., Any],
    kind: str = "linear",
    aliases: bool = False,
    facts: Facts = NO_FACTS,
    outputs: int | None = 1,
    lower: Lowering | None = None,
) -> Callable[..., Any]:
    """Define an op linear in its one input by its transpose `transpose(ct, _out, _x, **params)`."""

    def jvp(tangents: Sequence[Any], _out: Any, _x: Any, **params: Any) -> Any:
        return function(tangents[0], **params)

    op = registry.add(
        Op(
            name=name,
            evaluate=evaluate,
            infer=infer,
            vjps=(transpose,),
            jvp=jvp,
            batch=batch,
            kind=kind,
            aliases=aliases,
            facts=facts,
            outputs=outputs,
            lower=lower,
        )
    )
    function = fast_params(op)
    function.op = op  # type: ignore[attr-defined]
    return function


def sharing(function: Callable[..., Any], *, permutes: bool = False) -> Callable[..., Any]:
    """Make the results of an op that does not copy handles on their input, as NumPy's views are.

    Args:
        function: The function of an op of one input.
        permutes: Whether the op only rearranges, so that its transpose is its inverse.
    """

    def shared(x: Any, /, **params: Any) -> Any:
        if not isinstance(x, Tensor):
            return function(x, **params)

        def again(base: Tensor) -> Any:
            return function(base.fresh(), **params)

        def back(new: Any) -> Any:
            return op.vjps[0](new, None, Aval(x.shape, x.dtype), **params)

        target = function(x, **params).fresh()
        if not permutes:
            return Alias(x, again, target)
        if not _shares(target, x):
            return target  # a copy after all, as reshaping a transposed array makes
        return Alias(x, again, target, back)

    op: Op = function.op  # type: ignore[attr-defined]
    assert op.aliases
    shared.op = op  # type: ignore[attr-defined]
    return shared


def _shares(view: Tensor, tensor: Tensor) -> bool:
    """Whether the array of one tensor is a view of that of another, or both are of a third."""
    array = tensor.value if type(tensor) is Tensor else innermost(tensor, show=True)
    part = view.value if type(view) is Tensor else innermost(view, show=True)
    owner = getattr(part, "base", None)
    return owner is not None and (owner is array or owner is getattr(array, "base", None))


def general(
    name: str,
    evaluate: Callable[..., Any],
    *,
    infer: Callable[..., Any],
    vjps: Sequence[Rule] = (),
    vjp_each: Rule | None = None,
    vjp_all: Rule | None = None,
    jvp: Rule | None = None,
    batch: Callable[..., Any],
    kind: str = "general",
    outputs: int | None = 1,
    aliases: bool = False,
    facts: Facts = NO_FACTS,
    effect: str | None = None,
    lower: Lowering | None = None,
    composed: Callable[..., Any] | None = None,
    partials: Sequence[Rule] = (),
    bounded: bool = False,
) -> Callable[..., Any]:
    """Define an op by all of its rules; without a VJP its result is untracked.

    An elementwise one may state the partials its rules are made of, or that these are `bounded`;
    see `elementwise`.
    """
    op = registry.add(
        Op(
            name=name,
            evaluate=evaluate,
            infer=infer,
            vjps=tuple(vjps),
            vjp_each=vjp_each,
            vjp_all=vjp_all,
            jvp=jvp,
            batch=batch,
            kind=kind,
            outputs=outputs,
            aliases=aliases,
            facts=facts,
            effect=effect,
            lower=lower,
            composed=composed,
        )
    )
    if kind == "elementwise" and vjps and outputs == 1 and not bounded:
        _make_careful(op, partials, () if partials else vjps)
    function: Callable[..., Any]
    # The fast path does not ask modes: a trace has to see an effect, also of arrays from outside.
    if len(vjps) == 1 and effect is None:
        function = fast_params(op)
    else:

        def function(*args: Any, **params: Any) -> Any:
            return call(op, args, params)

    function.op = op  # type: ignore[attr-defined]
    return function
