"""Matrix products in a plan: which matrices to multiply, and where they are."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from gradtape.compiler.kernel import Buffer
from gradtape.core.define import broadcast_sizes

Shape = tuple[int, ...]


class Product(NamedTuple):
    """`c = a·b` for a batch of matrices stored one after the other.

    Attributes:
        a: The first factor.
        b: The second factor.
        c: The buffer for the product.
        m: Rows of each product.
        n: Columns of each product.
        k: Length of the sums.
        transpose_a: Whether matrices of `a` are stored transposed: k×m, used as m×k.
        transpose_b: Whether matrices of `b` are stored transposed: n×k, used as k×n.
        strides: Elements from one matrix to the next in a, b and c; 0: the same one for all.
        calls: The calls that do the batch: (offset of a, of b, of c, number of products) each.
        work: Memory for partial results, if the target asked for some.
    """

    a: Buffer
    b: Buffer
    c: Buffer
    m: int
    n: int
    k: int
    transpose_a: bool
    transpose_b: bool
    strides: tuple[int, int, int]
    calls: tuple[tuple[int, int, int, int], ...]
    work: Buffer | None = None

    @property
    def name(self) -> str:
        """Its name in listings."""
        return f"matmul {self.m}×{self.k}·{self.k}×{self.n}"

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.m * self.n * self.k * sum(count for *_, count in self.calls)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The buffers it uses."""
        buffers = (self.a, self.b, self.c)
        return buffers if self.work is None else (*buffers, self.work)


def product_of(
    x: tuple[Buffer, Shape, bool], y: tuple[Buffer, Shape, bool], out: Buffer
) -> Product:
    """The product of two arrays as `matmul` multiplies them.

    Args:
        x: The first factor: its buffer, the shape it is read under, and whether its last two axes
            are to be swapped.
        y: The second factor, likewise.
        out: The buffer for the result.
    """
    (a, shape_a, transpose_a), (b, shape_b, transpose_b) = x, y
    if len(shape_a) == 1:
        shape_a = (1, *shape_a)
    if len(shape_b) == 1:
        # A column is a row that is stored transposed.
        shape_b, transpose_b = (1, *shape_b), True
    rows, inner = shape_a[-2:] if not transpose_a else shape_a[:-3:-1]
    columns = shape_b[-2] if transpose_b else shape_b[-1]
    batch_a, batch_b = shape_a[:-2], shape_b[:-2]
    if math.prod(batch_b) == 1 and not transpose_a:
        # One large product rather than many small ones.
        rows, batch_a, batch_b = rows * math.prod(batch_a), (), ()
    calls, strides = _batches(batch_a, batch_b, rows * inner, inner * columns, rows * columns)
    return Product(a, b, out, rows, columns, inner, transpose_a, transpose_b, strides, tuple(calls))


def _batches(
    batch_a: Shape, batch_b: Shape, size_a: int, size_b: int, size_c: int
) -> tuple[list[tuple[int, int, int, int]], tuple[int, int, int]]:
    """The runs of products with constant strides that make up a broadcast batch."""
    batch = broadcast_sizes(batch_a, batch_b)
    batch_a, batch_b = ((1,) * (len(batch) - len(own)) + own for own in (batch_a, batch_b))
    # The last axes that are alike in both factors form one run.
    start, run, same = len(batch), 1, (True, True)
    while start > 0:
        n = batch[start - 1]
        now = (batch_a[start - 1] == n, batch_b[start - 1] == n)
        if n != 1 and run != 1 and now != same:
            break
        if n != 1:
            same = now
        run *= n
        start -= 1
    strides = (size_a if same[0] else 0, size_b if same[1] else 0, size_c)
    each_a, each_b = math.prod(batch_a[start:]) * size_a, math.prod(batch_b[start:]) * size_b
    calls = [
        (_place(at, batch_a) * each_a, _place(at, batch_b) * each_b, number * run * size_c, run)
        for number, at in enumerate(itertools.product(*map(range, batch[:start])))
    ]
    return calls, strides


def _place(index: Shape, shape: Shape) -> int:
    """The position of an index into the first axes of a shape, which may be broadcast."""
    place = 0
    for i, n in zip(index, shape, strict=False):
        place = place * n + (i if n != 1 else 0)
    return place
