"""Linear maps that an equation with a matrix K defines: x = F(K, e), and the transpose s = G(K, c).

Each is an op, found step by step on raw arrays. How they change with K follows from the equation:
dx = F(K, de + M(x, dK)) and ds = G(K, dc + N(s, dK)). By K they have the same cotangent, the
transpose of M: that of x by K, given s = G(K, ct), is the one of s by K, given x = F(K, ct).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape.core.define import added
from gradtape.ops.linalg.stacks import matrixwise, summed

# A function of two arrays, such as an unknown and the change of a matrix.
Pair = Callable[[Any, Any], Any]


def transposed_pair(
    forth: tuple[str, Pair],
    back: tuple[str, Pair],
    *,
    moved: Pair,
    moved_back: Pair,
    by_matrix: Pair,
) -> tuple[Pair, Pair]:
    """The functions F and G as ops, on stacks of arrays of one shape.

    Args:
        forth: The name of the op F, and a function that computes it for one matrix.
        back: The same for G.
        moved: M(x, dK), the change of e that a change of the matrix amounts to.
        moved_back: N(s, dK), the same for c.
        by_matrix: The cotangent of the matrix from x and s: ⟨s, M(x, dK)⟩ = ⟨by_matrix(x, s), dK⟩.
    """

    def forth_vjp(wanted: Any, ct: Any, out: Any, matrix: Any, _e: Any) -> Any:
        s = pull(matrix, ct)
        return by_matrix(out, s) if wanted[0] else None, s

    def forth_jvp(tangents: Sequence[Any], out: Any, matrix: Any, _e: Any) -> Any:
        d_matrix, de = tangents
        return push(matrix, added(de, None if d_matrix is None else moved(out, d_matrix)))

    def back_vjp(wanted: Any, ct: Any, out: Any, matrix: Any, _c: Any) -> Any:
        x = push(matrix, ct)
        return by_matrix(x, out) if wanted[0] else None, x

    def back_jvp(tangents: Sequence[Any], out: Any, matrix: Any, _c: Any) -> Any:
        d_matrix, dc = tangents
        return pull(matrix, added(dc, None if d_matrix is None else moved_back(out, d_matrix)))

    push = matrixwise(*forth, vjp_all=summed(forth_vjp), jvp=forth_jvp)
    pull = matrixwise(*back, vjp_all=summed(back_vjp), jvp=back_jvp)
    return push, pull
