"""Constructors by class of op: the op states as little as possible, the rest is derived.

- `elementwise`, `elementwise_op`: state one linear map per argument, `ct ↦ ct·∂`. It serves as VJP
  and as JVP (for complex numbers with its conjugate); un-broadcasting, casts and batching follow.
- `linear`: states only the transpose; its JVP is the op itself.
- `multilinear`: states a transpose per input; its JVP is the sum of the op with one replaced.
- `composite`: states the other ops it is made of, and a rule where it has a better one than theirs.
- `general`: states everything that cannot be derived.

A forward that is also the expression for one element, or a composition of ops, is written once.

Each returns the function that runs the op on anything: arrays in, arrays out; tensors in, tensors
out. Rules are written with operators and such functions only, so that they run at NumPy speed on
arrays and are themselves recorded, batched or traced on tensors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from operator import add
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.batching import batch_at_front, batch_elementwise, batch_in_place
from gradtape.core.broadcasting import (
    broadcast_sizes as broadcast_sizes,
    broadcast_tangent as broadcast_tangent,
    unbroadcast as unbroadcast,
)
from gradtape.core.call import call, call_operator
from gradtape.core.evaluate import sum_of_terms
from gradtape.core.fast import fast_binary, fast_params, fast_reflected, fast_several, fast_unary
from gradtape.core.lowering import Composite, Lowering, Pointwise, Terms
from gradtape.core.needed_ops import needed
from gradtape.core.nested import Alias
from gradtape.core.op import NO_FACTS, Facts, Op, Rule, Zero, infer_like, registry, rule_reads
from gradtape.core.settle import guarded, settled_tangent
from gradtape.core.state import STATE, run_inside, seen_by
from gradtape.core.tensor import Tensor, innermost

F = TypeVar("F", bound=Callable[..., Any])


# ---- elementwise --------------------------------------------------------------------------------


def elementwise(
    forward: Callable[..., Any],
    *partials: Rule,
    operator: str | None = None,
    **options: Any,
) -> Callable[[F], F]:
    """Define an elementwise op from the declaration of its public function.

    Args:
        forward: A NumPy ufunc, or `forward(xp, *arrays)`.
        *partials: As for `elementwise_op`.
        operator: The operator it implements: "add" installs `__add__` and `__radd__`.
        **options: As for `elementwise_op`.
    """

    def define(declared: F) -> F:
        name = declared.__name__
        function = elementwise_op(name, forward, *partials, **options)
        op: Op = function.op  # type: ignore[attr-defined]
        function = functools.update_wrapper(function, declared)
        if operator is not None:
            install_operator(operator, op, function)
        return function  # type: ignore[return-value]

    return define


def elementwise_op(
    name: str,
    forward: Callable[..., Any],
    *partials: Rule,
    facts: Facts = NO_FACTS,
    fast: Callable[..., Any] | None = None,
    vjps: Sequence[Rule] = (),
    jvp: Rule | None = None,
    lower: Callable[..., Any] | Lowering | ModuleType | None = None,
    bounded: bool = False,
    outputs: int = 1,
) -> Callable[..., Any]:
    """Define an elementwise op by its name; returns `function(*arrays, **params)`.

    Args:
        name: The name of the op.
        forward: A NumPy ufunc, or `forward(xp, *arrays, **params)`.
        *partials: Per array `partial(ct, out, *arrays, **params)`, linear in `ct`: `ct` times the
            partial derivative. Without any, the result is untracked. With several results it is
            `partial(out, *arrays, **params)`, the derivatives of all results.
        facts: Properties that graph passes rely on (see `core.op.Facts`).
        fast: A function that computes it on raw arrays faster than `forward`, if there is one.
        vjps: Rules that differ from the partials because the op is not complex-linear.
        jvp: The same for forward mode.
        lower: The expression for one element, `lower(*elements, **params)`; or `core.scalar`
            itself where `forward` is a formula that holds for elements, with that module as `xp`;
            or another form of lowering.
        bounded: Whether partials stay finite where values are not, as those of a choice do.
        outputs: The number of results.
    """
    ufunc = isinstance(forward, np.ufunc)
    evaluate = functools.partial(_run_ufunc, forward) if ufunc else forward
    parametric = not ufunc and _takes_params(forward, len(partials))
    batch = batch_in_place if len(partials) == 1 else batch_elementwise
    if outputs > 1:
        vjps, jvp = _rules_of_results(partials, outputs)
    op = registry.add(
        Op(
            name=name,
            evaluate=evaluate,
            infer=functools.partial(_infer_elementwise, evaluate, facts.python is not None),
            vjps=tuple(vjps) or tuple(map(_vjp_of_partial, partials, range(len(partials)))),
            jvp=jvp or (_jvp(partials) if partials else None),
            batch=_batch_results if outputs > 1 else batch,
            kind="elementwise",
            outputs=outputs,
            facts=facts,
            lower=_pointwise(lower, forward),
            fast=fast or (forward if ufunc else functools.partial(forward, np)),
            partials=() if parametric or outputs > 1 else partials,
        )
    )
    if outputs == 1 and not bounded:
        _make_careful(op, partials, vjps)
    function: Callable[..., Any]
    if not partials or len(partials) > 2 or outputs > 1:
        function = _plain_function(op)
    elif parametric:
        function = fast_params(op) if len(partials) == 1 else _plain_function(op)
    else:
        function = fast_unary(op) if len(partials) == 1 else fast_binary(op)
    function.op = op  # type: ignore[attr-defined]
    return function


def _takes_params(forward: Callable[..., Any], arrays: int) -> bool:
    """Whether a forward takes parameters besides `xp` and the given number of arrays."""
    code = getattr(forward, "__code__", None)
    if code is None:
        return False
    keywords = code.co_kwonlyargcount or code.co_flags & inspect.CO_VARKEYWORDS
    return bool(keywords) or code.co_argcount > arrays + 1


def _make_careful(op: Op, partials: Sequence[Rule], vjps: Sequence[Rule]) -> None:
    """Give an elementwise op rules that handle values that are not finite."""
    if all(not rule_reads(rule) for rule in vjps or partials):
        return
    flat = tuple(guarded(op, partial, i) for i, partial in enumerate(partials))
    if vjps or not partials:
        op.careful = tuple(guarded(op, rule, i) for i, rule in enumerate(op.vjps))
    else:
        op.careful = tuple(map(_vjp_of_partial, flat, range(len(flat))))
    op.careful_flat = flat or op.careful
    op.careful_jvp = functools.partial(settled_tangent, op)


def _pointwise(lower: Any, forward: Callable[..., Any]) -> Lowering | None:
    """The lowering of an elementwise op: a plain function is the expression for one element."""
    if lower is scalar:
        return Pointwise(functools.partial(forward, scalar))
    return lower if lower is None or isinstance(lower, Lowering) else Pointwise(lower)


def _run_ufunc(ufunc: Callable[..., Any], _xp: Any, *arrays: Any) -> Any:
    # CuPy arrays handle NumPy's ufuncs themselves.
    return ufunc(*arrays)


def _plain_function(op: Op) -> Callable[..., Any]:
    def function(*args: Any, **params: Any) -> Any:
        return call(op, args, params)

    return function


def _infer_elementwise(
    evaluate: Callable[..., Any], operator: bool, *avals: Aval, **params: Any
) -> Any:
    kinds = tuple([(aval.dtype, aval.weak) for aval in avals])
    # 0 and 0.0 are equal but do not give the same dtype.
    typed = tuple([(name, value, type(value)) for name, value in params.items()]) if params else ()
    dtypes = _result_dtypes(evaluate, kinds, typed)
    shape = broadcast_sizes(*[aval.shape for aval in avals])
    if len(dtypes) > 1:
        return tuple(Aval(shape, dtype) for dtype in dtypes)
    # Python's operators on Python numbers give a number that is just as weak.
    weak = operator and dtypes[0].kind in "ifc" and all(aval.weak for aval in avals)
    return Aval(shape, dtypes[0], weak=weak)


@functools.lru_cache(maxsize=8192)
def _result_dtypes(
    evaluate: Callable[..., Any], kinds: tuple[Any, ...], params: tuple[Any, ...]
) -> tuple[np.dtype[Any], ...]:
    """The dtypes NumPy returns for empty arrays of these dtypes: its own promotion, not a copy."""
    numbers = all(weak for _, weak in kinds)
    samples = (
        dtype.type(1).item() if weak and not numbers else np.empty(0, dtype)
        for dtype, weak in kinds
    )
    with np.errstate(over="ignore"):  # of a parameter that fits what float16 stands for
        out = evaluate(np, *samples, **{name: value for name, value, _ in params})
    return tuple(part.dtype for part in (out if isinstance(out, tuple) else (out,)))


def _vjp_of_partial(partial: Rule, argument: int) -> Rule:
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

    def jvp(tangents: Sequence[Any], out: Any, *inputs: Any, **params: Any) -> Any:
        total = sum_of_terms(partials, tangents, out, inputs, **params)
        # Records of the fast paths keep no result to tell the shape: it is that of the input.
        return total if total is None or out is None else broadcast_tangent(total, out)

    jvp.reads = frozenset().union(*(rule_reads(p) for p in partials))  # type: ignore[attr-defined]
    return jvp


def _rules_of_results(slopes: Sequence[Rule], outputs: int) -> tuple[tuple[Rule, ...], Rule]:
    """VJPs and JVP of an elementwise op with several results, from the slopes of all of them."""

    def vjp(i: int) -> Rule:
        def rule(ct: Any, out: Any, *inputs: Any, **params: Any) -> Any:
            slope = slopes[i](out, *inputs, **params)
            terms = [part * needed.conj(by) for part, by in zip(ct, slope, strict=True)]
            return unbroadcast(functools.reduce(add, terms), inputs[i].shape)

        return rule

    def jvp(tangents: Sequence[Any], out: Any, *inputs: Any, **params: Any) -> Any:
        total: list[Any] = [None] * outputs
        for one, tangent in zip(slopes, tangents, strict=True):
            if tangent is not None:
                for k, by in enumerate(one(out, *inputs, **params)):
                    total[k] = by * tangent if total[k] is None else total[k] + by * tangent
        pairs = zip(total, out, strict=True)
        return tuple(None if part is None else broadcast_tangent(part, of) for part, of in pairs)

    return tuple(map(vjp, range(len(slopes)))), jvp


def _batch_results(
    op: Op, axes: Sequence[int | None], args: Sequence[Any], params: dict[str, Any]
) -> tuple[Any, Any]:
    out, axis = batch_elementwise(op, axes, args, params)
    return out, (axis,) * len(out)


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


# ---- linear -------------------------------------------------------------------------------------


def linear(
    name: str,
    evaluate: Callable[..., Any] | Composite,
    transpose: Rule | None = None,
    *,
    self_adjoint: bool = False,
    infer: Callable[..., Any] = infer_like,
    batch: Callable[..., Any] = batch_at_front,
    kind: str = "linear",
    aliases: bool = False,
    facts: Facts = NO_FACTS,
    outputs: int | None = 1,
    lower: Lowering | ModuleType | None = None,
) -> Callable[..., Any]:
    """Define an op linear in its one input by its transpose `transpose(ct, _out, _x, **params)`.

    A map that is its own transpose passes `self_adjoint` instead.
    """

    def again(tangents: Sequence[Any], _out: Any, _x: Any, **params: Any) -> Any:
        return function(tangents[0], **params)

    def back(ct: Any, _out: Any, _x: Any, **params: Any) -> Any:
        return function(ct, **params)

    assert self_adjoint is (transpose is None)
    evaluate, lower = _forward_and_lowering(evaluate, lower)
    op = registry.add(
        Op(
            name=name,
            evaluate=evaluate,
            infer=infer,
            vjps=(transpose or back,),
            jvp=again,
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


def multilinear(
    name: str,
    evaluate: Callable[..., Any] | Composite,
    *transposes: Rule,
    again: Callable[..., Any] | None = None,
    reads: Terms | None = None,
    samples: int = 0,
    sums_samples: bool = False,
    **options: Any,
) -> Callable[..., Any]:
    """Define an op that is linear in each of its inputs by its transposes.

    Args:
        name: The name of the op.
        evaluate: `evaluate(xp, *arrays, **params)`, or a composition.
        *transposes: Per input `transpose(ct, _out, *inputs, **params)`, which reads all inputs but
            its own. `Zero` for an input that only selects among the others, such as an index.
        again: A faster way to call the op, if there is one.
        reads: What an element of the result reads, as in `Facts`.
        samples: How many operands have samples, as in `Facts`.
        sums_samples: Whether the result is a sum over them.
        **options: As for `general`: infer, batch, kind, lower, composed, heavy.
    """
    constants = {i for i, transpose in enumerate(transposes) if isinstance(transpose, Zero)}

    # d f(x, y) = f(dx, y) + f(x, dy)
    def jvp(tangents: Sequence[Any], _out: Any, *inputs: Any, **params: Any) -> Any:
        run: Callable[..., Any] = again or function
        total = None
        for i, tangent in enumerate(tangents):
            if tangent is not None and i not in constants:
                changed = list(inputs)
                changed[i] = tangent
                term = run(*changed, **params)
                total = term if total is None else total + term
        return total

    # The tangent of an input is combined with the values that its transpose reads, and no others.
    jvp.reads = frozenset()  # type: ignore[attr-defined]
    facts = Facts(product=True, reads=reads, samples=samples, sums_samples=sums_samples)
    function: Callable[..., Any] = general(
        name, evaluate, vjps=transposes, jvp=jvp, facts=facts, **options
    )
    return function


def added(*terms: Any) -> Any:
    """The sum of the terms that are not None; None if there are none."""
    present = [term for term in terms if term is not None]
    return functools.reduce(add, present) if present else None


def sharing(function: Callable[..., Any], *, permutes: bool = False) -> Callable[..., Any]:
    """Make results of an op that does not copy handles on its input, like NumPy's views.

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
    """Whether the array of one tensor is a view of the other's, or both are views of a third."""
    array = tensor.value if type(tensor) is Tensor else innermost(tensor, show=True)
    part = view.value if type(view) is Tensor else innermost(view, show=True)
    owner = getattr(part, "base", None)
    return owner is not None and (owner is array or owner is getattr(array, "base", None))


# ---- everything else ----------------------------------------------------------------------------


def general(
    name: str,
    evaluate: Callable[..., Any] | Composite,
    *,
    infer: Callable[..., Any] = infer_like,
    vjps: Sequence[Rule] = (),
    vjp_each: Rule | None = None,
    vjp_all: Rule | None = None,
    jvp: Rule | None = None,
    self_adjoint: bool = False,
    batch: Callable[..., Any] = batch_at_front,
    kind: str = "general",
    outputs: int | None = 1,
    aliases: bool = False,
    facts: Facts = NO_FACTS,
    effect: str | None = None,
    lower: Lowering | ModuleType | None = None,
    composed: Callable[..., Any] | None = None,
    heavy: Callable[..., bool] | None = None,
) -> Callable[..., Any]:
    """Define an op by all of its rules (see `Op`); without a VJP its result is untracked.

    The forward may be a `Composite`, if the op is a composition of others on arrays too. If it is
    a formula that also holds for tensors, it is written once, and the lowering is the module to
    pass to it as `xp` (`ops.array_functions`). An op is `self_adjoint` if its derivative by the
    first input is a symmetric map, and that by the others is `Zero`: then its VJP is its JVP.
    """
    evaluate, lower = _forward_and_lowering(evaluate, lower)
    if self_adjoint:
        jvp = _pushed_by(*vjps)
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
            heavy=heavy,
        )
    )
    # The fast path ignores modes, but a trace must see an effect even on arrays from outside.
    function = fast_params(op) if len(vjps) == 1 and effect is None else fast_several(op)
    function.op = op  # type: ignore[attr-defined]
    return function


def _pushed_by(rule: Rule, *constants: Rule) -> Rule:
    """The JVP of an op with a symmetric VJP whose other inputs have no derivative."""
    assert all(isinstance(constant, Zero) for constant in constants)

    def jvp(tangents: Sequence[Any], out: Any, *inputs: Any, **params: Any) -> Any:
        return None if tangents[0] is None else rule(tangents[0], out, *inputs, **params)

    jvp.reads = rule_reads(rule)  # type: ignore[attr-defined]
    return jvp


# ---- compositions -------------------------------------------------------------------------------


def composite(
    name: str,
    function: Callable[..., Any],
    *vjps: Rule,
    forward: Callable[..., Any] | None = None,
    vjp_all: Rule | None = None,
    jvp: Rule | None = None,
    lower: Lowering | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """Define an op that is a composition of other ops, with rules where it has better ones.

    What is not given is derived: the forward is the composition, and cotangents and tangents go
    through it.

    Args:
        name: The name of the op.
        function: The composition, `function(*arrays, **params)`; it is also the lowering.
        *vjps: A rule per input, that needs less time or memory than those of the parts.
        forward: `forward(xp, *arrays, **params)`, if the composition is too slow on arrays.
        vjp_all: A rule for all inputs at once, in place of `vjps`.
        jvp: A rule for tangents.
        lower: Another lowering, if there is a faster forward as well.
        **options: As for `general`: infer, batch, kind, outputs.
    """
    return general(
        name,
        forward or Composite(function),
        vjps=vjps,
        vjp_all=None if vjps else vjp_all or _pulled_through(function),
        jvp=jvp or _pushed_through(function),
        lower=lower or (forward and Composite(function)),
        **options,
    )


def _pulled_through(function: Callable[..., Any]) -> Rule:
    """The VJP of a composition."""

    def vjp_all(wanted: Sequence[bool], ct: Any, _out: Any, *inputs: Any, **params: Any) -> Any:
        varied, chosen = _varied(function, wanted, inputs, params)
        _, pull = needed.vjp(varied, *chosen)
        given = iter(pull(ct))
        return tuple(next(given) if own else None for own in wanted)

    return vjp_all


def _pushed_through(function: Callable[..., Any]) -> Rule:
    """The JVP of a composition."""

    def jvp(tangents: Sequence[Any], _out: Any, *inputs: Any, **params: Any) -> Any:
        moving = [tangent is not None for tangent in tangents]
        varied, chosen = _varied(function, moving, inputs, params)
        return needed.jvp(varied, chosen, tuple(t for t in tangents if t is not None))[1]

    return jvp


def _varied(
    function: Callable[..., Any], which: Sequence[bool], inputs: Sequence[Any], params: Any
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of some inputs, with the others fixed, and the values of these inputs."""

    def varied(*chosen: Any) -> Any:
        given = iter(chosen)
        pairs = zip(inputs, which, strict=True)
        return function(*(next(given) if varies else x for x, varies in pairs), **params)

    return varied, tuple(x for x, varies in zip(inputs, which, strict=True) if varies)


def _forward_and_lowering(
    evaluate: Callable[..., Any] | Composite, lower: Lowering | ModuleType | None
) -> tuple[Callable[..., Any], Lowering | None]:
    """The forward and the lowering of an op that states only one of them."""
    if isinstance(lower, ModuleType):
        assert not isinstance(evaluate, Composite)
        return evaluate, Composite(functools.partial(evaluate, lower))
    if not isinstance(evaluate, Composite):
        return evaluate, lower
    assert lower is None
    composition = evaluate.function

    def forward(_xp: Any, *operands: Any, **params: Any) -> Any:
        if STATE.get().modes:
            # Modes have seen the op, so they are not shown its parts.
            return run_inside(seen_by(()), functools.partial(composition, *operands, **params))
        return composition(*operands, **params)

    return forward, evaluate
