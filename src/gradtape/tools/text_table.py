"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Rows of cells as text in columns: the first `left` ones and the last begin at the left.

    >>> from gradtape.tools.text_table import aligned
    >>> print(aligned([("layer", "norm", "verdict"), ("0", "12.5", ""), ("10", "3", "dead")]))
    layer  norm  verdict
    0      12.5
    10        3  dead
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            f"{cell:<{width}}" if place < left or place == len(widths) - 1 else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
