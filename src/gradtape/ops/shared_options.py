"""Explain once the parameters that several functions share.

The functions of a family take the same options: those of Fourier transforms, or of windows that
move over an array. One table, which the functions name, explains each of them. The docstring of a
function explains the rest, and may explain one of them in another way.

>>> from gradtape.ops.shared_options import options
>>> ALONG = {"axis": "Along which axis.", "keepdims": "Whether the axis stays, with size 1."}
>>> @options(ALONG, raises={"AxisError": "There is no such axis."})
... def middle(x, /, axis=-1, keepdims=False):
...     '''The element in the middle.
...
...     Args:
...         x: The array.
...         keepdims: Whether to keep the axis.
...     '''
>>> print(middle.__doc__)
The element in the middle.
<BLANKLINE>
Args:
    x: The array.
    axis: Along which axis.
    keepdims: Whether to keep the axis.
<BLANKLINE>
Raises:
    AxisError: There is no such axis.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_WIDTH = 96
# In their order in docstrings.
_SECTIONS = ("Args", "Attributes", "Returns", "Raises")
_NOTHING: Mapping[str, str] = {}


def options(
    *tables: Mapping[str, str],
    attributes: Mapping[str, str] = _NOTHING,
    raises: Mapping[str, str] = _NOTHING,
) -> Callable[[F], F]:
    """Complete the docstring of a function or class with the texts of tables about its parameters.

    Args:
        *tables: The text about each parameter; the first table that has it wins.
        attributes: The text about each attribute that all classes of the family have.
        raises: The text about each error that all functions of the family raise.
    """
    known = {name: text for table in reversed(tables) for name, text in table.items()}

    def complete(function: F) -> F:
        if function.__doc__ is None:  # as with `python -OO`
            return function
        names = _parameters_of(function)
        paragraphs = inspect.cleandoc(function.__doc__).split("\n\n")
        _complete_section(paragraphs, "Args", names, known)
        _complete_section(paragraphs, "Attributes", attributes, attributes)
        _complete_section(paragraphs, "Raises", raises, raises)
        function.__doc__ = wrapped("\n\n".join(paragraphs))
        return function

    return complete


def section(function: Any, title: str) -> dict[str, str]:
    """The entries of a section of a docstring by their names: a table for another docstring.

    >>> from gradtape.ops.shared_options import section
    >>> section(gt.nn.celu, "Raises")
    {'ArgumentError': '`alpha` is not positive.'}
    """
    for paragraph in (inspect.getdoc(function) or "").split("\n\n"):
        if paragraph.startswith(f"{title}:\n"):
            entries = {name: text.split(":", 1)[1] for name, text in _entries(paragraph).items()}
            return {name: " ".join(text.split()) for name, text in entries.items()}
    return {}


def _parameters_of(function: Any) -> Iterable[str]:
    """The names of the parameters of a function, or of what makes the objects of a class."""
    signature = getattr(function, "__signature__", None)
    if signature is not None:
        return tuple(signature.parameters)
    made_by = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
    code = made_by.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]  # type: ignore[no-any-return]


def wrapped(text: str) -> str:
    """A docstring with its lines wrapped as in the sources, where a text was put in."""
    lines = text.split("\n")
    for n, line in enumerate(lines):
        if len(line) > _WIDTH:
            margin = line[: len(line) - len(line.lstrip())]
            lines[n] = textwrap.fill(line, _WIDTH, subsequent_indent=margin and f"{margin}    ")
    return "\n".join(lines)


def _complete_section(
    paragraphs: list[str], title: str, names: Iterable[str], known: Mapping[str, str]
) -> None:
    """Add missing entries to a section, in the order of the names."""
    said: dict[str, str] = {}
    for place, text in enumerate(paragraphs):
        if text.startswith(f"{title}:\n"):
            said = _entries(paragraphs.pop(place))
            break
        if _stands_below(text, title):
            break
    else:
        place = len(paragraphs)
    entries = [
        said.pop(name) if name in said else f"    {name}: {known[name]}"
        for name in names
        if name in said or name in known
    ]
    entries += said.values()
    if entries:
        paragraphs.insert(place, "\n".join([f"{title}:", *entries]))


def _entries(section: str) -> dict[str, str]:
    """The entries of a section, by their names."""
    found: list[str] = []
    for line in section.split("\n")[1:]:
        if line.startswith("     "):  # goes on
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return {entry.partition(":")[0].strip(" *"): entry for entry in found}


def _stands_below(paragraph: str, title: str) -> bool:
    """Whether a paragraph comes after a section: an example, or a later section."""
    first, _, rest = paragraph.partition("\n")
    if first[:-1] in _SECTIONS[_SECTIONS.index(title) + 1 :] and first.endswith(":"):
        return True
    # An example may be of one function of a family (`ops.family`).
    return first.startswith(">>> ") or (first.endswith(":") and rest.startswith(">>> "))
