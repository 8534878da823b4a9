"""What generated code refers to that is not in its own module."""

from __future__ import annotations

from gradtape.compiler.cpu.runtime import blocks, pool, scratch


def imports(text: str) -> dict[str, int]:
    """Of the thread pool and of kept memory, the symbols that the text of a module refers to."""
    needed: dict[str, int] = {}
    if "@gt_parallel" in text:
        needed |= pool.imports()
    if "@gt_take" in text:
        needed |= blocks.imports()
    if "@gt_scratch(" in text:
        needed |= scratch.imports()
    return needed
