"""Symbols that generated code refers to outside its own module."""

from __future__ import annotations

from gradtape.compiler.cpu.runtime import blocks, pool, scratch, signals


def imports(text: str) -> dict[str, int]:
    """The addresses of symbols of the runtime that the text of a module refers to."""
    needed: dict[str, int] = {}
    if "@gt_parallel" in text:
        needed |= pool.imports()
    if "@gt_take" in text:
        needed |= blocks.imports()
    if "@gt_scratch(" in text:
        needed |= scratch.imports()
    if "@gt_poll(" in text:
        needed |= signals.imports()
    return needed
