"""Making functions public: wraps them so that their errors are explained.

A function of `gt.scipy.signal` may find an option unusable only when it computes with it, in an
error of Python or NumPy that names neither the function nor the option. Checking every option would
slow down every call, so nothing is checked before something has gone wrong.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from gradtape import advice
from gradtape.advice import tensor_attributes
from gradtape.core.adopted_calls import call_adopted
from gradtape.core.deferrable import deferrable
from gradtape.core.hooks import HOOKS
from gradtape.core.state import STATE
from gradtape.errors import MissingNameError, UnknownSizeError
from gradtape.locks import once

F = TypeVar("F", bound=Callable[..., Any])

# The modules whose functions get a wrapper: the prefix of their names, and the least number of
# parts of the name.
_WRAPPED = {"gradtape.ops.": 4, "gradtape.autodiff.": 3}
# Functions that every program loads (`gradtape.ops.shape`) check their arguments themselves. They
# are only put off on lazy tensors of unknown size; ops need not even that.
_LIGHT = "gradtape.ops."
_WITHOUT_ARRAYS = ("gradtape.ops.generator",)
# Modules whose functions and classes explain a keyword that they do not have, and nothing else.
_WITH_KEYWORDS = ("amp", "compiler", "data", "io", "nn", "optim", "training", "tree")
# Transforms that every program loads; they only make functions, and explain their keywords.
_TRANSFORMS = "grad hessian jacfwd jacobian jacrev value_and_grad"
# Some of them are often called with a keyword of another library, such as `dim=`, and explain that.
_ADVISED = (
    "all amax amin any argmax argmin column_stack concat concatenate cumprod cumsum dot dstack "
    "einsum empty_like full_like hstack log_softmax logsumexp max mean min ones_like outer pad "
    "prod softmax stack std sum var vstack zeros_like"
)


def make_public(namespace: dict[str, Any], *modules: str) -> None:
    """Export the names of a module, wrap its functions, and give advice for missing names.

    Such a module (`gt.linalg`) is a list of imports `name as name`, which type checkers take for
    its public names; `__all__` follows from them.

    Args:
        namespace: The `globals()` of the module, after its imports.
        *modules: The names that are public although they are modules.

    >>> gt.nn.Conv4d
    Traceback (most recent call last):
        ...
    gradtape.errors.MissingNameError: module 'gradtape.nn' has no attribute 'Conv4d'; did you mean
    gt.nn.Conv3d?
    """
    namespace["__all__"] = [
        name
        for name, value in namespace.items()
        if name in modules or not (name.startswith("_") or isinstance(value, ModuleType))
    ]
    module = namespace["__name__"]
    whole = module.removeprefix("gradtape.")
    short = whole if whole.startswith("scipy.") else whole.partition(".")[0]  # "nn" of functional
    for name in namespace["__all__"]:
        namespace[name] = explained(namespace[name], module)

    def missing(name: str) -> object:
        raise MissingNameError(
            name, lambda name: advice.instead_in(short, name), f"module {module!r}"
        )

    namespace["__getattr__"] = missing


def explained(function: F, module: str) -> F:
    """A function wrapped so that its errors name the argument; other objects as they are.

    Classes explain keywords that they do not have, and are not wrapped.

    Args:
        function: The object that a module exports.
        module: The module that exports it, by which it is pickled.
    """
    if isinstance(function, type):
        _explain_keywords(function)
    if not isinstance(function, FunctionType) or hasattr(function, "op"):
        return function  # ops name themselves in their errors (`core.evaluate`)
    home = function.__module__
    if any(
        home.startswith(start) and len(home.split(".")) >= parts
        for start, parts in _WRAPPED.items()
    ):
        wrapper: F = _wrapper(function)
    elif home.startswith(_LIGHT) and home not in _WITHOUT_ARRAYS:
        wrapper = deferrable(function)
    elif _has_keywords(function):
        wrapper = _with_keywords(function)
    else:
        return function
    if wrapper.__module__ == home:
        wrapper.__module__ = module
    return wrapper


@once
def _wrapper(function: F) -> F:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            if STATE.get().modes:
                return call_adopted(function, args, kwargs)
            return function(*args, **kwargs)
        except UnknownSizeError as error:
            return error.deferred(wrapper, args, kwargs)
        except Exception as error:
            advice.raise_explained(function, args, kwargs, error)

    return wrapper  # type: ignore[return-value]


def _explain_keywords(made: type) -> None:
    """Let a class of ours explain a keyword that it does not have.

    Without that it is a TypeError of Python's, which names no keyword that there is.
    """
    owner = next(one for one in made.__mro__ if "__init__" in vars(one))
    init = vars(owner)["__init__"]
    if isinstance(init, FunctionType) and _has_keywords(init):
        setattr(owner, "__init__", _with_keywords(init))  # noqa: B010 - for type checkers


def _has_keywords(function: FunctionType) -> bool:
    """Whether it is a function of those modules whose keywords are all known, not wrapped yet."""
    code = function.__code__
    is_ours = function.__module__.startswith(tuple(f"gradtape.{one}." for one in _WITH_KEYWORDS))
    takes_others = code.co_flags & inspect.CO_VARKEYWORDS
    return is_ours and not takes_others and not hasattr(function, "__wrapped__")


@once
def _with_keywords(function: F) -> F:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            # Raised by the call itself, and not by what was called.
            if kwargs and error.__traceback__ is not None and error.__traceback__.tb_next is None:
                advice.raise_unknown_keyword(function, args, kwargs, error)
            raise

    return wrapper  # type: ignore[return-value]


def missing_name(name: str) -> MissingNameError:
    """The error for a name that `gradtape` itself does not have."""
    return MissingNameError(name, lambda name: advice.instead(name))


@functools.cache  # as `amax` is `max`
def _advised(function: F) -> F:
    """A function wrapped so that it explains a keyword that it does not have, at little cost."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except UnknownSizeError as error:
            return error.deferred(wrapper, args, kwargs)
        except TypeError as error:
            advice.raise_explained(function, args, kwargs, error)

    wrapper.__module__ = "gradtape"
    return wrapper  # type: ignore[return-value]


def install(namespace: dict[str, Any]) -> None:
    """Fill the hooks of core, and give tensors attributes that say what to write instead.

    Args:
        namespace: The `globals()` of `gradtape`, some functions of which are wrapped.
    """
    advised, transforms = _ADVISED.split(), _TRANSFORMS.split()
    for name, function in namespace.items():
        if name in advised:
            namespace[name] = _advised(function)
        elif name in transforms:
            namespace[name] = _with_keywords(function)
            namespace[name].__module__ = "gradtape"
        elif isinstance(function, FunctionType) and function.__module__.startswith(_LIGHT):
            namespace[name] = explained(function, "gradtape")
    HOOKS.operand_refused = lambda error, name: advice.name_caller(error, name)
    HOOKS.rule_failed = lambda op, error: advice.name_rule(op, error)
    HOOKS.conversion_refused = lambda error, recorded: advice.add_ways_out(error, recorded)
    tensor_attributes.install()
