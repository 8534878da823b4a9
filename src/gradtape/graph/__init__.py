"""Graphs of op calls: functions recorded at abstract values, lazy graphs, and tools for both."""

from typing import Any as _Any

from gradtape import advice as _advice
from gradtape.core.lazy import found_at as _found_at
from gradtape.errors import MissingNameError as _MissingNameError

# Public names and where they are, "module:name"; loaded at first use. Modules of this package have
# other names: importing one makes it an attribute here.
_PUBLIC = {
    "Feeder": "gradtape.lazy.feeds:Feeder",
    "assert_that": "gradtape.lazy.hooks:assert_that",
    "control_dependencies": "gradtape.lazy.hooks:control_dependencies",
    "cost": "gradtape.tools.graph_cost:cost",
    "evaluate": "gradtape.graph.checked_run:evaluate",
    "from_bytes": "gradtape.io.graph_files:from_bytes",
    "grad": "gradtape.lazy.derivatives:grad",
    "hessian_vector_product": "gradtape.lazy.derivatives:hessian_vector_product",
    "jacobians": "gradtape.lazy.derivatives:jacobians",
    "load": "gradtape.io.graph_files:load",
    "make_graph": "gradtape.graph.graph_of_function:make_graph",
    "raw_hook": "gradtape.lazy.hooks:raw_hook",
    "save": "gradtape.io.graph_files:save",
    "show": "gradtape.lazy.hooks:show",
    "show_shape": "gradtape.lazy.hooks:show_shape",
    "structural_hash": "gradtape.graph.ir:structural_hash",
    "to_bytes": "gradtape.io.graph_files:to_bytes",
    "to_dot": "gradtape.tools.graph_view:to_dot",
    "to_html": "gradtape.tools.graph_view:to_html",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> _Any:
    place = _PUBLIC.get(name)
    if place is None:
        raise _MissingNameError(
            name, lambda name: _advice.instead_in("graph", name), f"module {__name__!r}"
        )
    # Found here directly from now on.
    return globals().setdefault(name, _found_at(place))


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
