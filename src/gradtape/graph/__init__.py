"""Graphs of op calls: functions recorded at abstract values, and tools for them."""

from typing import Any as _Any

from gradtape import advice as _advice
from gradtape.core.lazy import found_at as _found_at
from gradtape.errors import MissingNameError as _MissingNameError

# Public names and where they are, "module:name"; loaded at first use. Modules of this package have
# other names: importing one makes it an attribute here.
_PUBLIC = {
    "cost": "gradtape.tools.graph_cost:cost",
    "evaluate": "gradtape.graph.checked_run:evaluate",
    "from_bytes": "gradtape.io.graph_files:from_bytes",
    "load": "gradtape.io.graph_files:load",
    "make_graph": "gradtape.graph.graph_of_function:make_graph",
    "save": "gradtape.io.graph_files:save",
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
    return _found_at(place)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
