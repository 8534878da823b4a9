"""Help with errors: they name the function and the argument, and say what to write instead.

Core and ops raise plain errors; help is added where something is made public:

- `public` wraps functions and namespaces, and fills the hooks of core;
- methods of tensors, and implementations of NumPy's functions, catch errors themselves and hand
  them to `raise_explained`, as a wrapper would cost every call a frame;
- `tensor_attributes` has names that tensors lack but arrays of other libraries have, and those of
  compiled functions and tapes.

These two modules are loaded with the package. The others are loaded here, when something has gone
wrong, and nowhere else: import `gradtape.advice`, and write `advice.shown(value)`.

| module | says |
|---|---|
| `argument_errors` | which argument does not fit its annotation |
| `error_names` | the function that was called, where another one found the error |
| `keywords` | our name for a keyword of another library |
| `missing_names` | what to write for a name that does not exist, from the table `foreign_names` |
| `conversions` | what to write where a tensor cannot become an array |
| `scipy_counterparts` | the equivalent in gradtape of a call of SciPy |
"""

from typing import TYPE_CHECKING, Any

from gradtape.locks import load

if TYPE_CHECKING:
    from gradtape.advice.argument_errors import (
        raise_explained as raise_explained,
        raise_unknown_keyword as raise_unknown_keyword,
        shown as shown,
    )
    from gradtape.advice.conversions import (
        add_ways_out as add_ways_out,
        note_hidden_conversion as note_hidden_conversion,
        of_objects as of_objects,
        raise_of_objects as raise_of_objects,
    )
    from gradtape.advice.error_names import name_caller as name_caller, name_rule as name_rule
    from gradtape.advice.foreign_names import DISTRIBUTIONS as DISTRIBUTIONS
    from gradtape.advice.keywords import (
        keyword_advice as keyword_advice,
        raise_misfit as raise_misfit,
    )
    from gradtape.advice.missing_names import instead as instead, instead_in as instead_in

_HOMES = {
    "DISTRIBUTIONS": "foreign_names",
    "add_ways_out": "conversions",
    "instead": "missing_names",
    "instead_in": "missing_names",
    "keyword_advice": "keywords",
    "name_caller": "error_names",
    "name_rule": "error_names",
    "note_hidden_conversion": "conversions",
    "of_objects": "conversions",
    "raise_of_objects": "conversions",
    "raise_explained": "argument_errors",
    "raise_misfit": "keywords",
    "raise_unknown_keyword": "argument_errors",
    "shown": "argument_errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    # Found here directly from now on.
    return globals().setdefault(name, getattr(load(f"{__name__}.{_HOMES[name]}"), name))
