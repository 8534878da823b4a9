"""Graphs of op calls: functions recorded at abstract values.

The public names of `gt.graph` are those of lazy graphs, in a layer above: they are loaded at first
use.
"""

from typing import Any

from gradtape.core.lazy import found_at

_PUBLIC = {
    "Feeder": "gradtape.lazy.feeds:Feeder",
    "assert_that": "gradtape.lazy.hooks:assert_that",
    "control_dependencies": "gradtape.lazy.hooks:control_dependencies",
    "grad": "gradtape.lazy.derivatives:grad",
    "hessian_vector_product": "gradtape.lazy.derivatives:hessian_vector_product",
    "jacobians": "gradtape.lazy.derivatives:jacobians",
    "raw_hook": "gradtape.lazy.hooks:raw_hook",
    "show": "gradtape.lazy.hooks:show",
    "show_shape": "gradtape.lazy.hooks:show_shape",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    # Found here directly from now on.
    return globals().setdefault(name, found_at(_PUBLIC[name]))


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
