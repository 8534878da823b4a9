"""Element programs as text, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradtape.compiler.element_program import (
    Choose,
    ElementProgram,
    For,
    GoBack,
    Statement,
    WhileHolds,
    blocks_of,
)
from gradtape.compiler.kernel import Store, walk
from gradtape.core.scalar import Scalar


def element_listing(program: ElementProgram) -> str:
    """An element program as indented text; expressions are not written out, but counted."""
    return "\n".join(_element_lines(program.statements, ""))


def _element_lines(statements: Sequence[Statement], indent: str) -> Iterator[str]:
    for each in statements:
        if isinstance(each, Store):
            yield f"{indent}{each.place!r} = {_counted(each.expressions)}"
            continue
        head, names = {
            For: ("for", ("",)),
            WhileHolds: ("while", ("condition", "")),
            GoBack: ("back through while", ("condition", "step", "step back")),
            Choose: ("choose", ()),
        }[type(each)]
        if isinstance(each, For):
            head = f"for {each.axis} < {each.axis.size}"
        numbers = [e.next for e in getattr(each, "carried", ())]
        carried = f", carrying {len(numbers)}: {_counted(numbers)}" if numbers else ""
        yield f"{indent}{head}{carried}:"
        for n, block in enumerate(blocks_of(each)):
            name = names[n] if names else f"branch {n}"
            inside = indent + "    "
            if name:
                yield f"{inside}{name}: {_counted(block.results)}"
                inside += "    "
            yield from _element_lines(block.statements, inside)


def _counted(expressions: Sequence[Scalar]) -> str:
    seen: set[int] = set()
    count = sum(
        part.name not in ("constant", "axis", "load", "variable")
        for whole in expressions
        for part in walk(whole, seen)
    )
    return f"{count} instruction{'' if count == 1 else 's'}"
