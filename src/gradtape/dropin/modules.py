"""Modules with SciPy's names: functions of ours where they take tensors, SciPy's own elsewhere."""

from __future__ import annotations

import types
from typing import Any

from gradtape import advice
from gradtape.advice.public import explained
from gradtape.dropin.distributions import drop_in_distribution, is_distribution
from gradtape.dropin.functions import drop_in
from gradtape.dropin.methods import with_methods
from gradtape.errors import MissingNameError
from gradtape.locks import load

# The module of distributions, which is slow to import.
_DISTRIBUTIONS = "scipy.stats"


def make_scipy(namespace: dict[str, Any], *, ours: str = "") -> None:
    """Turn a module of functions for tensors into a drop-in for SciPy's of the same name.

    Its functions get SciPy's signatures, and call SciPy's where there is no tensor. The names it
    lacks are SciPy's own.

    Args:
        namespace: The `globals()` of the module, after its imports; its name says which module of
            SciPy it stands for.
        ours: Names of functions that are always gradtape's. They call the user's functions, which
            may use tensors that are not among the arguments.
    """
    module = namespace["__name__"]
    short = module.removeprefix("gradtape.")
    theirs = load(short)
    names = [
        name
        for name, value in namespace.items()
        if not name.startswith("_") and (not isinstance(value, types.ModuleType) or _below(value))
    ]
    for name in names:
        own, original = namespace[name], getattr(theirs, name, None)
        if isinstance(own, types.FunctionType) and callable(original) and name not in ours.split():
            # Errors give the name under which `own` is public elsewhere: `gt.linalg.det`.
            own = drop_in(original, explained(own, own.__module__), f"{short}.{name}")
        elif short == _DISTRIBUTIONS and is_distribution(original):
            own = drop_in_distribution(original, own, name)
        elif isinstance(original, type) and hasattr(own, "of_scipys"):
            own = drop_in(with_methods(original, own, module), own, f"{short}.{name}")
        namespace[name] = own if hasattr(own, "on_tensors") else explained(own, module)

    refusing: dict[str, Any] = {}  # distributions without a form for tensors

    def missing(name: str) -> Any:
        # Not `__path__`, by which Python would load SciPy's modules a second time.
        if name.startswith("__") or not hasattr(theirs, name):
            raise MissingNameError(
                name, lambda name: advice.instead_in(short, name), f"module {module!r}"
            )
        if name in refusing:
            return refusing[name]
        found = getattr(theirs, name)
        if short == _DISTRIBUTIONS and is_distribution(found):
            found = refusing.setdefault(name, drop_in_distribution(found, None, name))
        return found

    public = {*names, *getattr(theirs, "__all__", dir(theirs))}
    namespace["__all__"] = sorted(name for name in public if not name.startswith("_"))
    namespace["__getattr__"] = missing
    namespace["__dir__"] = lambda: sorted({*names, *dir(theirs)})
    # A package, so that `from gradtape.scipy.signal.windows import hann` works (see submodules.py).
    namespace.setdefault("__path__", [])


def _below(module: types.ModuleType) -> bool:
    return module.__name__.startswith("gradtape.scipy.")
