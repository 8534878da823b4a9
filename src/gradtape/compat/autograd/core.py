"""Reverse and forward mode of functions of one argument, and the rules of primitives.

A rule for reverse mode is a function `maker(ans, *args, **kwargs)` of the result and the arguments
of a primitive; it returns the function from the cotangent of the result to that of one argument.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gradtape.autodiff.reverse import Pullback, record
from gradtape.autodiff.transforms import jvp as gradtape_jvp
from gradtape.compat.autograd.primitives import (
    conjugate,
    conjugated,
    primitive as _primitive,
    primitive_jvps as primitive_jvps,
    primitive_vjps as primitive_vjps,
)
from gradtape.compat.autograd.tracer import (
    JVPNode as JVPNode,
    VJPNode as VJPNode,
    getval as getval,
    isbox as isbox,
)
from gradtape.compat.autograd.util import subval
from gradtape.compat.autograd.vspaces import (
    SparseObject as SparseObject,
    VSpace as VSpace,
    vspace as vspace,
)
from gradtape.compat.autograd.wrap_util import get_name
from gradtape.core.tensor import Tensor
from gradtape.errors import (
    ArgumentError,
    GradtapeWarning,
    MissingRuleError,
    UnsupportedError,
    a_type,
)

Function = Callable[..., Any]


# ---- transforms ---------------------------------------------------------------------------------


def recorded(fun: Function, x: Any, name: str, *, has_aux: bool = False) -> Pullback:
    """Run a function of one argument, and record it; warns if the result depends on nothing."""
    positions, single = getattr(fun, "positions", (0,)), getattr(fun, "single", True)
    args: list[Any] = [None] * (max(positions, default=-1) + 1)
    for position, value in zip(positions, (x,) if single else x, strict=True):
        args[position] = _floating(value)

    def of_args(*args: Any) -> Any:
        return fun(args[positions[0]] if single else tuple(args[n] for n in positions))

    run = record(of_args, args, {}, positions, name, has_aux=has_aux)
    if all(node is None for node, _ in run.ends):
        warnings.warn("Output seems independent of input.", GradtapeWarning, stacklevel=4)
    return run


def pulled(fun: Function, run: Pullback, seeds: Sequence[Any], *, last: bool = False) -> Any:
    """The cotangent of the argument of a function, given that of its result.

    Args:
        fun: The function.
        run: Its recorded run.
        seeds: The cotangent of each leaf of the result, in autograd's convention; none for zero.
        last: Whether what was recorded can be freed.
    """
    cts = list(map(conjugate, seeds)) or [None] * len(run.outs)
    found = run.pull(cts, last=last)
    return conjugated(found[0] if getattr(fun, "single", True) else found)


def make_vjp(fun: Function, x: Any) -> tuple[Function, Any]:
    """Run a function; returns its vjp, and its result.

    The vjp takes a cotangent of the result and returns that of the argument.

    >>> from gradtape.compat.autograd.core import make_vjp
    >>> vjp, value = make_vjp(lambda x: x * x, 3.0)
    >>> vjp(1.0), value
    (np.float64(6.0), np.float64(9.0))
    """
    run = recorded(fun, x, "make_vjp")
    value = run.value(copy=True)

    independent = all(node is None for node, _ in run.ends)

    def vjp(g: Any) -> Any:
        # As in autograd, a result that does not depend on the argument takes any cotangent.
        return pulled(fun, run, [] if independent else run.seed(g))

    return vjp, value


def make_jvp(fun: Function, x: Any) -> Function:
    """Return the map from tangents of an argument to the pair of a function's value and tangent.

    >>> from gradtape.compat.autograd.core import make_jvp
    >>> make_jvp(lambda x: x * x, 3.0)(1.0)
    (np.float64(9.0), np.float64(6.0))
    """

    def jvp(g: Any) -> tuple[Any, ...]:
        return gradtape_jvp(fun, (_floating(x),), (g,))

    return jvp


def _floating(x: Any) -> Any:
    """An array of integers as floats: autograd differentiates by it, but not by one integer."""
    whole = isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.ndim
    return x.astype(float) if whole else x


def backward_pass(g: Any, end_node: Any) -> Any:
    """Refuse: nodes are gradtape's own, and `make_vjp` goes back through them."""
    raise UnsupportedError(
        f"backward_pass: got {a_type(end_node)} as node, but gradtape keeps records of its own; "
        "use autograd.make_vjp(f)(x), which returns the map from cotangents, and the value"
    )


# ---- rules for reverse mode ---------------------------------------------------------------------


def primitive(f_raw: Function) -> Function:
    """Make a function a primitive, with the methods that old programs give rules by."""
    made: Any = _primitive(f_raw)
    made.defvjp, made.defvjp_is_zero, made.defgrad = _old_ways(made)
    return made  # type: ignore[no-any-return]


primitive_with_deprecation_warnings = primitive


# NumPy's functions whose derivative is zero wherever it exists, so that a rule means another one.
_FLAT = frozenset(
    {"all", "any", "around", "ceil", "fix", "floor", "floor_divide", "heaviside", "rint", "round"}
    | {"argmax", "argmin", "argpartition", "argsort", "sign", "trunc", "equal", "not_equal"}
    | {"greater", "greater_equal", "less", "less_equal"}
)


def _takes_rules(fun: Any, name: str) -> bool:
    """Whether a function is a primitive; if not, a rule is not used, and this warns.

    Packages give rules to functions of NumPy and SciPy that autograd lacks, or has wrong. Rules of
    other functions that are no primitives have no effect in autograd, either.
    """
    if getattr(fun, "_is_autograd_primitive", False):
        return True
    called, known = get_name(fun), _is_known(fun)
    if not callable(fun):
        raise ArgumentError(f"{name}: got {a_type(fun)}, expected a primitive")
    why = "To give it a rule, "
    if known:
        why = "NumPy's and SciPy's functions have derivatives already; to replace them, "
    text = (
        f"{name}: got {called}, expected a primitive. {why}write {called} = primitive({called}), "
        "and give that the rule"
    )
    if known and called in _FLAT:
        raise UnsupportedError(text)
    warnings.warn(f"{text}. This rule is not used", GradtapeWarning, stacklevel=3)
    return False


def _is_known(fun: Any) -> bool:
    """Whether a function is one of NumPy, SciPy or gradtape."""
    if isinstance(fun, np.ufunc):
        return True
    home = str(getattr(fun, "__module__", None) or "")
    return home.partition(".")[0] in ("gradtape", "numpy", "scipy")


def defvjp_argnums(fun: Function, vjpmaker: Function) -> None:
    """Give a primitive one reverse-mode rule for all arguments.

    Args:
        fun: The primitive.
        vjpmaker: `vjpmaker(argnums, ans, args, kwargs)` returns a function from the cotangent of
            the result to those of the arguments at the positions `argnums`.
    """
    if _takes_rules(fun, "defvjp_argnums"):
        primitive_vjps[fun] = vjpmaker


def defvjp_argnum(fun: Function, vjpmaker: Function) -> None:
    """Give a primitive one reverse-mode rule for each argument.

    Args:
        fun: The primitive.
        vjpmaker: `vjpmaker(argnum, ans, args, kwargs)` returns a function from the cotangent of the
            result to that of the argument at the position `argnum`.
    """

    def for_all(argnums: Sequence[int], *call: Any) -> Function:
        return _together([vjpmaker(argnum, *call) for argnum in argnums])

    if _takes_rules(fun, "defvjp_argnum"):
        primitive_vjps[fun] = for_all


def defvjp(fun: Function, *vjpmakers: Any, argnums: Iterable[int] | None = None) -> None:
    """Give a primitive a reverse-mode rule for each of its arguments.

    Args:
        fun: The primitive.
        *vjpmakers: For each argument a function `maker(ans, *args, **kwargs)`, which returns the
            function from the cotangent of the result to that of the argument; None for an argument
            that the result does not depend on.
        argnums: The positions of the arguments; counted from 0 if not given.

    Raises:
        UnsupportedError: It is a function of NumPy whose derivative is zero, such as `np.sign`; for
            others that are no primitives there is a warning that the rule is not used.
        ArgumentError: A rule is neither a function nor None.
    """
    if not _takes_rules(fun, "defvjp"):
        return
    by_argnum = _by_argnum("defvjp", fun, vjpmakers, argnums)

    def for_all(wanted: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Function:
        makers = [_rule_for(fun, by_argnum, n, "VJP") for n in wanted]
        return _together([maker and maker(ans, *args, **kwargs) for maker in makers])

    primitive_vjps[fun] = for_all


def _together(vjps: Sequence[Function | None]) -> Function:
    """One function to the cotangents of several arguments."""
    return lambda g: [None if vjp is None else vjp(g) for vjp in vjps]


def _by_argnum(
    name: str, fun: Any, rules: Sequence[Any], argnums: Iterable[int] | None
) -> dict[int, Any]:
    allowed = (None, "same") if name == "defjvp" else (None,)
    for rule in rules:
        if not callable(rule) and rule not in allowed:
            raise ArgumentError(
                f"{name}: got {rule!r} as a rule of {get_name(fun)}, expected a function, or "
                f"{' or '.join(map(repr, allowed))}"
            )
    return dict(zip(itertools.count() if argnums is None else argnums, rules, strict=False))


def _rule_for(fun: Any, rules: dict[int, Any], argnum: int, kind: str) -> Any:
    if argnum not in rules:
        name = get_name(fun)
        raise MissingRuleError(
            f"{kind} of {name} wrt argnum {argnum} not defined; give def{kind.lower()}({name}, "
            "...) a rule for each argument, None for one without influence"
        )
    return rules[argnum]


# ---- rules for forward mode ---------------------------------------------------------------------


def defjvp_argnums(fun: Function, jvpmaker: Function) -> None:
    """Give a primitive one forward-mode rule for all arguments.

    Args:
        fun: The primitive.
        jvpmaker: `jvpmaker(argnums, gs, ans, args, kwargs)` returns the tangent of the result,
            given the tangents `gs` of the arguments at the positions `argnums`.
    """
    if _takes_rules(fun, "defjvp_argnums"):
        primitive_jvps[fun] = jvpmaker


def defjvp_argnum(fun: Function, jvpmaker: Function) -> None:
    """Give a primitive one forward-mode rule for each argument.

    Args:
        fun: The primitive.
        jvpmaker: `jvpmaker(argnum, g, ans, args, kwargs)` returns what the tangent `g` of the
            argument at the position `argnum` adds to the tangent of the result.
    """

    def for_all(argnums: Sequence[int], gs: Sequence[Any], *call: Any) -> Any:
        return _sum([jvpmaker(n, g, *call) for n, g in zip(argnums, gs, strict=True)])

    if _takes_rules(fun, "defjvp_argnum"):
        primitive_jvps[fun] = for_all


def defjvp(fun: Function, *jvpfuns: Any, argnums: Iterable[int] | None = None) -> None:
    """Give a primitive a forward-mode rule for each of its arguments.

    Args:
        fun: The primitive.
        *jvpfuns: For each argument a function `rule(g, ans, *args, **kwargs)`, which returns what
            its tangent `g` adds to the tangent of the result; "same" if the primitive is linear in
            it, None if the result does not depend on it.
        argnums: The positions of the arguments; counted from 0 if not given.

    Raises:
        UnsupportedError: It is a function of NumPy whose derivative is zero, such as `np.sign`; for
            others that are no primitives there is a warning that the rule is not used.
        ArgumentError: A rule is neither a function nor "same" nor None.
    """
    if not _takes_rules(fun, "defjvp"):
        return
    by_argnum = _by_argnum("defjvp", fun, jvpfuns, argnums)

    def for_all(wanted: Sequence[int], gs: Sequence[Any], ans: Any, args: Any, kwargs: Any) -> Any:
        terms = []
        for n, g in zip(wanted, gs, strict=True):
            rule = _rule_for(fun, by_argnum, n, "JVP")
            if rule == "same":
                terms.append(fun(*subval(args, n, g), **kwargs))
            elif rule is not None:
                terms.append(rule(g, ans, *args, **kwargs))
        return _sum(terms)

    primitive_jvps[fun] = for_all


def def_linear(fun: Function) -> None:
    """Say that a primitive is linear in each of its arguments, which is its forward-mode rule.

    Reverse mode needs a rule of its own, given by `defvjp`.

    >>> from gradtape.compat.autograd import make_jvp
    >>> from gradtape.compat.autograd.extend import def_linear, primitive
    >>> scaled = primitive(lambda x: 3.0 * x)
    >>> def_linear(scaled)
    >>> make_jvp(scaled)(np.ones(1))(np.ones(1))
    (array([3.]), array([3.]))
    """

    def rule(argnum: int, g: Any, _ans: Any, args: Any, kwargs: Any) -> Any:
        return fun(*subval(args, argnum, g), **kwargs)

    if _takes_rules(fun, "def_linear"):
        defjvp_argnum(fun, rule)


def _sum(terms: Sequence[Any]) -> Any:
    """The sum of tangents; None if there are none."""
    dense = [term.dense() if isinstance(term, SparseObject) else term for term in terms]
    if not dense:
        return None
    total = dense[0]
    for term in dense[1:]:
        total = total + term if isinstance(term, Tensor) else vspace(term).add(total, term)
    return total


# ---- the ways of old programs -------------------------------------------------------------------


def _old_ways(fun: Function) -> tuple[Function, Function, Function]:
    """The methods of a primitive that gave it rules in early versions of autograd."""
    makers: dict[int, Any] = {}

    def add(name: str, argnum: int, maker: Any) -> None:
        warnings.warn(
            f"The {name} method is deprecated; use defvjp(primitive, ...) of autograd.extend",
            GradtapeWarning,
            stacklevel=3,
        )
        makers[argnum] = maker
        defvjp(fun, *makers.values(), argnums=tuple(makers))

    def of_defvjp(vjpmaker: Function, argnum: int = 0) -> None:
        def maker(ans: Any, *args: Any, **kwargs: Any) -> Function:
            def vjp(g: Any) -> Any:
                return vjpmaker(g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs)

            return vjp

        add("defvjp", argnum, maker)

    def of_zero(argnums: Iterable[int] = (0,)) -> None:
        for argnum in argnums:
            add("defvjp_is_zero", argnum, None)

    def of_gradient(gradfun: Function, argnum: int = 0) -> None:
        add("defgrad", argnum, gradfun)

    return of_defvjp, of_zero, of_gradient
