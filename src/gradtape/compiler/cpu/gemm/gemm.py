"""Matrix products for compiled code, with a function for every size."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradtape.compiler.cpu.gemm.function import BatchedBlock, define, work_bytes
from gradtape.compiler.cpu.gemm.tile import PAIR, Block
from gradtape.compiler.cpu.llvm.builder import Module
from gradtape.compiler.cpu.llvm.link import Cpu, host
from gradtape.compiler.product import Product
from gradtape.core.promotion import is_half
from gradtape.errors import ArgumentError

# Vectors of columns have at least so many lanes where pairs are multiplied, and C so many rows.
PAIRED_LANES, PAIRED_ROWS = 4, 16


class Gemm(NamedTuple):
    """A batch of matrix products of static sizes, C = op(A)·op(B), all row-major.

    Attributes:
        scalar: float or double, in which it is computed.
        m: Rows of C.
        n: Columns of C.
        k: Length of the sums; 0 gives zeros.
        transpose_a: A is stored k×m and used as m×k.
        transpose_b: B is stored n×k and used as k×n.
        batch: The number of products.
        strides: Elements from one A, B and C to the next; 0 if all use the same.
        stored: The elements of A and B in memory, if others than `scalar`: bfloat16 or float16.
    """

    scalar: str
    m: int
    n: int
    k: int
    transpose_a: bool = False
    transpose_b: bool = False
    batch: int = 1
    strides: tuple[int, int, int] = (0, 0, 0)
    stored: tuple[str, str] = ("", "")

    @property
    def name(self) -> str:
        """The name of its function."""
        flags = ("t" if self.transpose_a else "n") + ("t" if self.transpose_b else "n")
        sizes = [self.m, self.n, self.k, flags]
        if self.batch != 1:
            sizes += [self.batch, *self.strides]
        return "_".join(map(str, ("gt_gemm", *self._elements, *sizes)))

    @property
    def _elements(self) -> tuple[str, ...]:
        """The elements of C, and of A and B if one of them has others."""
        return (self.scalar, *(x or self.scalar for x in self.stored if any(self.stored)))

    def work_bytes(self, cpu: Cpu | None = None) -> int:
        """The bytes that its function needs for partial results."""
        if min(self.m, self.n, self.k, self.batch) <= 0:
            return 0
        return work_bytes(self.form(cpu or host()), cpu or host())

    def define(self, module: Module, cpu: Cpu | None = None) -> str:
        """Define its function, `void name(ptr a, ptr b, ptr c, ptr work, ptr status)`.

        Args:
            module: Where to define it, unless it is there already. The function may refer to the
                symbols of `symbols.imports`.
            cpu: The CPU, by default that of this machine.

        Returns:
            The name. C must not overlap A or B. If there is no memory, the status, an integer of
            64 bits, becomes `NO_MEMORY` at most.

        Raises:
            ArgumentError: If results of a batch would overlap.
        """
        if self.batch > 1 and self.strides[2] < self.m * self.n:
            raise ArgumentError(
                f"matmul: got results of {self.m * self.n} elements, {self.strides[2]} apart, "
                "expected results that do not overlap"
            )
        if not module.defines(self.name):
            define(module, self.name, self.form(cpu or host()), cpu or host())
        return self.name

    def form(self, cpu: Cpu) -> BatchedBlock:
        """The product that a CPU computes: in pairs, if it has instructions for that."""
        product = self.simplified
        if product.block.pairs:
            return _with_pairs_of_b(product)
        return _in_pairs(product) if cpu.has_pairs and _fits_pairs(product.block) else product

    @property
    def simplified(self) -> BatchedBlock:
        """The same product, avoiding transposes, batches and single columns where possible."""
        m, n, k = self.m, self.n, self.k
        lda, ldb = m if self.transpose_a else k, k if self.transpose_b else n
        stored = (self.stored[0] or self.scalar, self.stored[1] or self.scalar)
        flags = (self.transpose_a, self.transpose_b)
        block = Block(self.scalar, m, n, k, *flags, lda, ldb, n, stored)
        return _simplified(BatchedBlock(block, self.batch, self.strides, "abc"))


def gemms_of(product: Product) -> list[Gemm]:
    """The functions that compute a product of a plan, one for each of its calls."""
    scalar = "float" if product.c.dtype.itemsize == 4 else "double"
    sizes = (product.m, product.n, product.k, product.transpose_a, product.transpose_b)
    a, b = (_stored(x.dtype) for x in (product.a, product.b))
    return [Gemm(scalar, *sizes, count, product.strides, (a, b)) for *_, count in product.calls]


def _stored(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "u":
        return PAIR  # as the step before the product has written it
    return dtype.name if is_half(dtype) else ""


def _fits_pairs(block: Block) -> bool:
    """Whether pairs of A are adjacent, and copying B into pairs takes little of the time."""
    both = block.stored == ("bfloat16", "bfloat16")
    even = block.k % 2 == 0 and block.n % PAIRED_LANES == 0 and not block.transpose_a
    return both and even and block.m >= PAIRED_ROWS


def _in_pairs(product: BatchedBlock) -> BatchedBlock:
    """The same with pairs of numbers along k in place of numbers."""
    block, (over_a, over_b, over_c) = product.block, product.strides
    if block.transpose_b:
        block, over_b = block._replace(ldb=block.ldb // 2), over_b // 2
    halved = block._replace(k=block.k // 2, lda=block.lda // 2)
    return _with_pairs_of_b(product._replace(block=halved, strides=(over_a // 2, over_b, over_c)))


def _with_pairs_of_b(product: BatchedBlock) -> BatchedBlock:
    """A product of pairs of A with B as it is read: in pairs, or two rows at a time."""
    block = product.block
    if block.transpose_b:
        return product._replace(block=block._replace(stored=(PAIR, PAIR)))
    return product._replace(block=block._replace(ldb=2 * block.ldb, stored=(PAIR, "bfloat16")))


def _simplified(product: BatchedBlock) -> BatchedBlock:
    block, batch, strides, order = product
    m, n, k = block.m, block.n, block.k
    dense = strides[::2] == (m * k, m * n) and strides[1] == 0 and not block.transpose_a
    if batch > 1 and dense:
        # One B for all: the As are one tall matrix.
        return _simplified(BatchedBlock(block._replace(m=batch * m), 1, (0, 0, 0), order))
    if n == 1:
        # A column is also a row: Cᵀ = op(B)ᵀ·op(A)ᵀ, where the first factor is a row as well.
        along_k = not block.transpose_a or m == 1
        ldb, stored = k if along_k else m, block.stored[::-1]
        block = Block(block.scalar, 1, m, k, False, along_k, k, ldb, m, stored)
        strides, order = (strides[1], strides[0], strides[2]), "bac"
    if block.m == 1:
        block = block._replace(transpose_a=False, lda=k)
    if k == 1:
        block = block._replace(transpose_a=False, lda=1, transpose_b=False, ldb=block.n)
    return BatchedBlock(block, batch, strides, order)
