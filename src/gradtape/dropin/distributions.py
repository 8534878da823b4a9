"""Distributions of SciPy that take tensors: SciPy's methods without a tensor, ours with one.

Each is an instance of a subclass of SciPy's class, so that all of SciPy's is there: attributes,
`rvs`, `fit`, `isinstance`. SciPy's frozen distributions of one variable ask the distribution they
are made of, and so take tensors as parameters and as arguments. Those of vectors compute
themselves; their methods are wrapped, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from gradtape import advice
from gradtape.dropin.held_tensors import any_tensor
from gradtape.errors import UnsupportedError
from gradtape.locks import load
from gradtape.ops.adapt import Adapter

_MODULE = "gradtape.scipy.stats"
# Methods that only set the random state, which distributions of tensors do not have.
_WITHOUT_EFFECT = frozenset({"seed"})


def is_distribution(value: Any) -> bool:
    """Whether an object of `scipy.stats` is a distribution.

    >>> import scipy.stats
    >>> from gradtape.dropin.distributions import is_distribution
    >>> is_distribution(scipy.stats.norm), is_distribution(scipy.stats.wishart)
    (True, True)
    >>> is_distribution(scipy.stats.rv_continuous), is_distribution(scipy.stats.zscore)
    (False, False)
    """
    stats = load("scipy.stats")
    of_vectors = type(stats.multivariate_normal).__base__
    return isinstance(value, stats.rv_continuous | stats.rv_discrete | of_vectors)


def drop_in_distribution(theirs: Any, ours: Any, name: str) -> Any:
    """A distribution with all that SciPy's has, whose methods take tensors.

    Args:
        theirs: SciPy's distribution.
        ours: The object whose methods compute with tensors; None if there is none, and a tensor is
            refused. What it lacks is refused, too.
        name: The public name, `norm`.

    Attributes:
        on_tensors: `ours`, if there is one.
        refuses_tensors: True if there is none.

    >>> gt.scipy.stats.norm.on_tensors.shapes
    ()
    """
    base = type(theirs)
    made: Any = type(
        base.__name__,
        (base,),
        {
            "__doc__": base.__doc__,
            "__module__": base.__module__ if ours is None else _MODULE,
            "__reduce__": lambda self: (_blank, (name,), self.__getstate__()),
            **({"refuses_tensors": True} if ours is None else {"on_tensors": ours}),
            **_methods(theirs, ours, name),
        },
    )
    distribution = made.__new__(made)
    state = theirs.__getstate__()
    if hasattr(distribution, "__setstate__"):
        distribution.__setstate__(state)
    else:
        distribution.__dict__.update(state)
    distribution.__doc__ = _described(theirs, ours)
    return distribution


def _blank(name: str) -> Any:
    """A distribution of this name without its attributes, which pickle adds."""
    made: Any = type(getattr(load(_MODULE), name))
    return made.__new__(made)


def _described(theirs: Any, ours: Any) -> str:
    """SciPy's documentation, and which methods take tensors."""
    known = [name for name in _public(theirs) if ours is not None and hasattr(ours, name)]
    if not known:
        return theirs.__doc__ or ""
    return (
        f"{theirs.__doc__ or ''}\n\nTensors\n-------\nWith a tensor among their arguments, "
        f"{', '.join(f'`{name}`' for name in known)} are computed by gradtape, with exact "
        "derivatives."
    )


def _public(theirs: Any) -> list[str]:
    """The methods of SciPy's class."""
    base = type(theirs)
    return [
        name
        for name in dir(base)
        if not name.startswith("_") and isinstance(getattr(base, name), FunctionType)
    ]


# ---- methods ------------------------------------------------------------------------------------


def _methods(theirs: Any, ours: Any, name: str) -> dict[str, Any]:
    base = type(theirs)
    methods = {each: _method(theirs, ours, name, each) for each in _public(theirs)}
    if hasattr(base, "_get_support"):  # of one variable
        methods["_get_support"] = _support(base._get_support, ours, name)
    elif callable(theirs):
        methods["__call__"] = _freezing(theirs, ours, name)
    return methods


def _method(theirs: Any, ours: Any, name: str, method: str) -> Callable[..., Any]:
    """A method of SciPy's with a function of ours for tensors."""
    of_class = getattr(type(theirs), method)
    if method == "freeze":
        return of_class  # type: ignore[no-any-return]
    own = getattr(ours, method, None)
    adapter = None if own is None else _adapter(getattr(theirs, method), own, f"{name}.{method}")
    # SciPy's `fit` finds the one of the base class by the type of the object.
    of_itself = getattr(theirs, method) if method == "fit" else None

    @functools.wraps(of_class)
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        if any_tensor(args, kwds):
            if adapter is None:
                raise _refusal(f"{name}.{method}", advice.DISTRIBUTIONS.get(method))
            return adapter(args, kwds)
        return of_class(self, *args, **kwds) if of_itself is None else of_itself(*args, **kwds)

    return call


def _adapter(theirs: Callable[..., Any], ours: Callable[..., Any], name: str) -> Adapter:
    return Adapter(theirs, ours, name=f"scipy.stats.{name}", without_effect=_WITHOUT_EFFECT)


def _refusal(name: str, instead: str | None) -> UnsupportedError:
    return UnsupportedError(
        f"scipy.stats.{name}: got a tensor, expected arrays: gradtape cannot differentiate it; "
        f"{instead or 'use another distribution or a formula'}, or t.detach().numpy() in place of "
        "the tensor to compute without gradient"
    )


def _support(of_class: Callable[..., Any], ours: Any, name: str) -> Callable[..., Any]:
    """The bounds for shape parameters, which freezing a distribution asks for."""

    def _get_support(self: Any, *args: Any, **kwds: Any) -> Any:
        if not any_tensor(args, kwds):
            return of_class(self, *args, **kwds)
        if ours is None:
            raise _refusal(name, None)
        return ours.bounds(*args, **kwds)

    return _get_support


# ---- frozen distributions of vectors ------------------------------------------------------------


def _freezing(theirs: Any, ours: Any, name: str) -> Callable[..., Any]:
    """Calling a distribution of vectors, which fixes its parameters."""
    adapter = None if ours is None else _adapter(theirs.__call__, ours, name)
    of_class = type(theirs).__call__
    classes: dict[type, type] = {}

    @functools.wraps(of_class)
    def freeze(self: Any, *args: Any, **kwds: Any) -> Any:
        if any_tensor(args, kwds):
            if adapter is None:
                raise _refusal(name, None)
            return adapter(args, kwds)
        frozen = of_class(self, *args, **kwds)
        made = classes.get(type(frozen))
        if made is None:
            made = classes[type(frozen)] = _frozen_class(frozen, adapter, name)
        frozen.__class__ = made
        frozen._given = self, args, kwds
        if hasattr(frozen, "_dist"):
            frozen._dist.__class__ = type(self)
        return frozen

    return freeze


def _frozen_class(frozen: Any, adapter: Adapter | None, name: str) -> type:
    """A subclass of SciPy's class whose methods take tensors."""
    base = type(frozen)
    methods = {each: _frozen_method(base, adapter, name, each) for each in _public(frozen)}
    members = {
        "__doc__": base.__doc__,
        "__module__": _MODULE,
        "__reduce__": lambda self: (_frozen_again, self._given, self.__getstate__()),
    }
    return type(base.__name__, (base,), {**members, **methods})


def _frozen_again(distribution: Any, args: Any, kwds: Any) -> Any:
    return distribution(*args, **kwds)


def _frozen_method(
    base: type, adapter: Adapter | None, name: str, method: str
) -> Callable[..., Any]:
    of_class = getattr(base, method)

    @functools.wraps(of_class)
    def call(self: Any, *args: Any, **kwds: Any) -> Any:
        if not any_tensor(args, kwds):
            return of_class(self, *args, **kwds)
        _, given, named = self._given
        own = None if adapter is None else getattr(adapter(given, named), method, None)
        if own is None:
            raise _refusal(f"{name}.{method}", advice.DISTRIBUTIONS.get(method))
        return own(*args, **kwds)

    return call
