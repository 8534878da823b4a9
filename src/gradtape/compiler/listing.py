"""Loop nests as text, for people: infix operators, and names for repeated expressions."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from gradtape.compiler.kernel import Kernel, Place, Statement, Store, parts_of, walk
from gradtape.core.scalar import Scalar

# Longer expressions get a name and a line of their own.
_LONGEST = 60
_INFIX = {
    "or": ("|", 0), "and": ("&", 0), "xor": ("^", 0),
    "equal": ("==", 1), "not_equal": ("!=", 1), "less": ("<", 1), "less_equal": ("<=", 1),
    "greater": (">", 1), "greater_equal": (">=", 1),
    "add": ("+", 2), "subtract": ("-", 2), "multiply": ("*", 3), "divide": ("/", 3),
}  # fmt: skip
_ATOM = 9


def listing(kernel: Kernel) -> str:
    """A loop nest as text; expressions used twice get a name and are written once.

    Args:
        kernel: The loop nest.

    Returns:
        The loops with their sizes; `a += b` accumulates over the inner loop.
    """
    outer = ", ".join(f"{axis} < {axis.size}" for axis in kernel.outer)
    inner = ", ".join(f"{axis} < {axis.size}" for axis in kernel.inner)
    lines = [f"for {outer}:" if outer else "once:"]
    numbers = itertools.count(1)
    for stage in kernel.stages:
        if stage.inner and inner:
            lines.append(f"    for {inner}:")
        indent = "        " if inner else "    "
        lines += [indent + line for line in _block(stage.inner, numbers)]
        lines += ["    " + line for line in _block(stage.outer, numbers)]
    return "\n".join(lines)


def _block(statements: Sequence[Statement], numbers: Iterator[int]) -> Iterator[str]:
    """The lines of the statements of one loop, with the names they use before them."""
    wholes = [whole for statement in statements for whole in statement.expressions]
    uses: Counter[int] = Counter(map(id, wholes))
    uses.update(id(arg) for part in parts_of(statements) for arg in part.args)
    written: dict[int, tuple[str, int]] = {}
    seen: set[int] = set()
    for statement in statements:
        for part in (p for whole in statement.expressions for p in walk(whole, seen)):
            text, strength = _expression(part, [written[id(arg)] for arg in part.args])
            shared = uses[id(part)] > 1 and bool(part.args)
            if shared or (len(text) > _LONGEST and part is not statement.value):
                name = f"v{next(numbers)}"
                yield f"{name} = {text}"
                text, strength = name, _ATOM
            written[id(part)] = text, strength
        yield _assignment(statement, [written[id(e)][0] for e in statement.expressions])


def _assignment(statement: Statement, texts: list[str]) -> str:
    value = texts.pop()
    if isinstance(statement, Store):
        return f"{_place(statement.place, *texts)} {'+=' if statement.adds else '='} {value}"
    target = statement.target
    if target.combine in _INFIX:
        return f"{target} {_INFIX[target.combine][0]}= {value}"
    if target.combine == "replace":
        return f"{target} = {value}"
    return f"{target} = {target.combine}({target}, {value})"


def _place(place: Place, index: str | None = None) -> str:
    """A place, moved on by an index if there is one."""
    if index is None:
        return str(place)
    fixed = f"{str(place)[:-1]} + " if place.steps or place.offset else f"{place.buffer}["
    return f"{fixed}{index}]"


def _expression(part: Scalar, args: list[tuple[str, int]]) -> tuple[str, int]:
    """The text of an expression from the texts of its arguments, and how strongly it binds."""
    texts = [text for text, _ in args]
    if part.name in ("load", "gather"):
        where = _place(part.extra, *([texts.pop(0)] if part.name == "gather" else []))
        return (f"({where} if {texts[0]})" if texts else where), _ATOM
    if not args:
        return str(part.extra), _ATOM
    if part.name == "convert":
        return f"{part.dtype}({texts[0]})", _ATOM
    if part.name not in _INFIX or len(args) != 2:
        return f"{part.name}({', '.join(texts)})", _ATOM
    sign, strength = _INFIX[part.name]
    # Operators group to the left: a - (b - c) keeps its parentheses.
    needed = (strength, strength + 1)
    left, right = (
        text if own >= least else f"({text})"
        for (text, own), least in zip(args, needed, strict=True)
    )
    return f"{left} {sign} {right}", strength
