"""Operators on functions of one argument, made operators on functions of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape.compat.autograd.util import subvals
from gradtape.errors import ArgumentError, a_type

Function = Callable[..., Any]


def unary_to_nary(unary_operator: Function) -> Function:
    """Turn `operator(fun, x)` into `operator(fun, argnum=0)`, which returns a function.

    Args:
        unary_operator: What is done with a function of one argument, at a point.

    Returns:
        A function of `fun`, of the position of an argument (or of a tuple of them, which count as
        one argument, a tuple), and of what else the operator takes.

    >>> from gradtape.compat.autograd.wrap_util import unary_to_nary
    >>> doubled = unary_to_nary(lambda fun, x: 2 * fun(x))
    >>> doubled(lambda x, y: x - y, 1)(5.0, 3.0)
    4.0
    """

    @wraps(unary_operator)
    def nary_operator(
        fun: Function, argnum: int | Sequence[int] = 0, *operands: Any, **options: Any
    ) -> Function:
        if not callable(fun):
            raise ArgumentError(
                f"{get_name(unary_operator)}: got {a_type(fun)}, expected a function; give the "
                "function itself, and the arguments afterwards"
            )
        if type(argnum) not in (int, tuple, list):
            raise ArgumentError(
                f"{get_name(unary_operator)}: got argnum={argnum!r}, expected the position of an "
                "argument, or a tuple or list of them"
            )

        name, single = get_name(fun), isinstance(argnum, int)

        @wrap_nary_f(fun, unary_operator, argnum)
        def nary_f(*args: Any, **kwargs: Any) -> Any:
            positions = _positions(get_name(unary_operator), args, argnum)

            def unary_f(x: Any) -> Any:
                values = (x,) if single else x
                return fun(*subvals(args, zip(positions, values, strict=True)), **kwargs)

            unary_f.__name__ = name
            # For errors, which name arguments by position.
            unary_f.__dict__.update(positions=positions, single=single)
            chosen = tuple(args[n] for n in positions)
            x = chosen[0] if single else chosen
            return unary_operator(unary_f, x, *operands, **options)

        return nary_f

    return nary_operator


def _positions(
    operator: str, args: tuple[Any, ...], argnum: int | Sequence[int]
) -> tuple[int, ...]:
    """The positions of the chosen arguments, counted from 0."""
    chosen = (argnum,) if isinstance(argnum, int) else tuple(argnum)
    if not all(-len(args) <= n < len(args) for n in chosen):
        raise ArgumentError(
            f"{operator}: got argnum={argnum} for {len(args)} positional argument(s), expected "
            "positions of these; pass what to differentiate by position"
        )
    positions = tuple(n % len(args) for n in chosen)
    if len(set(positions)) != len(positions):
        raise ArgumentError(f"{operator}: got argnum={argnum}, expected each argument once")
    return positions


def wraps(
    fun: Any, namestr: str = "{fun}", docstr: str = "{doc}", **fields: Any
) -> Callable[[Function], Function]:
    """A decorator that gives a function a name and a docstring made from those of another.

    Args:
        fun: The other function.
        namestr: The name, with `{fun}` for that of the other.
        docstr: The docstring, with `{doc}` likewise.
        **fields: What else occurs in them in braces.

    >>> from gradtape.compat.autograd.wrap_util import wraps
    >>> wraps(sorted, namestr="{fun}_{how}", how="backwards")(lambda x: x[::-1]).__name__
    'sorted_backwards'
    """

    def decorate(f: Function) -> Function:
        f.__name__ = namestr.format(fun=get_name(fun), **fields)
        f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **fields)
        return f

    return decorate


def wrap_nary_f(fun: Any, op: Any, argnum: int | Sequence[int]) -> Callable[[Function], Function]:
    """A decorator that names a function `grad_of_f_wrt_argnum_0`."""
    namestr = "{op}_of_{fun}_wrt_argnum_{argnum}"
    docstr = (
        "    {op} of function {fun} with respect to argument number {argnum}. Takes the\n"
        "    same arguments as {fun} but returns the {op}.\n"
    )
    return wraps(fun, namestr, docstr, op=get_name(op), argnum=argnum)


def get_name(f: Any) -> str:
    """The name of a function."""
    return str(getattr(f, "__name__", "[unknown name]"))


def get_doc(f: Any) -> str:
    """The docstring of a function."""
    return getattr(f, "__doc__", "") or ""
