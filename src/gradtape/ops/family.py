"""Functions that differ in their name and in little else, from one declaration.

`conv1d`, `conv2d` and `conv3d` have the same parameters, docstring and code. They are declared
once, by a function that takes the name and the rank before the arguments of users. In its docstring
`{sizes}` and `{things}` stand for words that depend on the rank. An example below a line `1d:` is
for the function of this rank only, one below a line `conv1d:` for the function of this name.

>>> from gradtape.ops.family import by_rank
>>> def _corner(name, rank, x, /, place=0):
...     '''The element of {things} at a corner, of shape ({sizes}).
...
...     2d:
...     >>> corner2d(np.ones((2, 2)))
...     1.0
...     '''
...     return x[(place,) * rank]
>>> corner1d, corner2d, corner3d = by_rank("corner", _corner)
>>> corner2d(np.eye(2), place=1).item()
1.0
>>> print(corner1d.__doc__)
The element of sequences at a corner, of shape (length).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from gradtape.ops.shared_options import wrapped

P = ParamSpec("P")
R = TypeVar("R")

_RANKS = {
    1: {"sizes": "length", "things": "sequences"},
    2: {"sizes": "height, width", "things": "images"},
    3: {"sizes": "depth, height, width", "things": "volumes"},
}


def by_rank(
    name: str,
    declared: Callable[Concatenate[str, int, P], R],
    ranks: Sequence[int] = (1, 2, 3),
    **texts: str,
) -> list[Callable[P, R]]:
    """Functions `name1d`, `name2d` and `name3d`, for arrays with one, two and three spatial axes.

    Args:
        name: What their names begin with.
        declared: The function they call, with a name and a rank before their own arguments.
        ranks: Which of them to make.
        **texts: The texts for further words in braces in the docstring.
    """
    return [
        _member(declared, (f"{name}{rank}d", rank), {"rank": str(rank), **_RANKS[rank], **texts})
        for rank in ranks
    ]


def member(name: str, declared: Callable[Concatenate[str, P], R], **texts: str) -> Callable[P, R]:
    """The function of a family that has this name.

    Args:
        name: The name.
        declared: The function it calls, with the name before its own arguments.
        **texts: The texts for words in braces in the docstring.
    """
    function: Callable[P, R] = _member(declared, (name,), texts)
    return function


def _member(declared: Any, leading: tuple[Any, ...], texts: dict[str, str]) -> Any:
    """A function whose signature is that of `declared` without the leading parameters."""
    name, make = leading[0], _maker(declared, len(leading))
    function = make(declared, *leading)
    # At the line of the declaration, so that a traceback points there.
    function.__code__ = function.__code__.replace(
        co_name=name, co_qualname=name, co_firstlineno=declared.__code__.co_firstlineno
    )
    function.__name__ = function.__qualname__ = name
    function.__defaults__, function.__kwdefaults__ = declared.__defaults__, declared.__kwdefaults__
    leading_names = declared.__code__.co_varnames[: len(leading)]
    annotations = declared.__annotations__.items()
    function.__annotations__ = {key: text for key, text in annotations if key not in leading_names}
    function.__doc__ = declared.__doc__ and _docstring(declared.__doc__, name, texts)
    return function


@functools.cache
def _maker(declared: Any, skipped: int) -> Any:
    """A function that makes members of a family from the declaration and leading arguments.

    It is compiled from text, as `dataclasses` does, so that members do not take `*args`: they have
    a signature of their own, and Python's errors about arguments that do not fit it.
    """
    code = declared.__code__
    positional = code.co_varnames[skipped : code.co_argcount]
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    bound = ", ".join(code.co_varnames[:skipped])
    taken = [*positional, *(("*", *by_name) if by_name else ())]
    if code.co_posonlyargcount > skipped:
        taken.insert(code.co_posonlyargcount - skipped, "/")
    given = ", ".join([bound, *positional, *(f"{option}={option}" for option in by_name)])
    text = f"lambda declared, {bound}: lambda {', '.join(taken)}: declared({given})"
    return eval(compile(text, code.co_filename, "eval"), declared.__globals__)


def _docstring(text: str, name: str, texts: dict[str, str]) -> str:
    """The docstring of one function, with the examples of the others left out."""
    text = inspect.cleandoc(text)
    for word, meaning in {"name": name, **texts}.items():
        text = text.replace(f"{{{word}}}", meaning)
    paragraphs = []
    for paragraph in text.split("\n\n"):
        whose, marked, example = paragraph.partition(":\n>>> ")
        if not marked or not whose.replace("_", "").isalnum():
            paragraphs.append(paragraph)
        elif whose in (name, name[-2:]):
            paragraphs.append(f">>> {example}")
    return wrapped("\n\n".join(paragraphs))
