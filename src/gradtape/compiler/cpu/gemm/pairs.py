"""Products of bfloat16 whose sums go along the rows of both factors, as gradients of weights.

Instructions that multiply pairs need two numbers that follow each other along the sum in one
integer. Here they are in different rows, so a step before the product writes A in pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradtape.compiler.cpu.gemm.gemm import PAIRED_LANES, PAIRED_ROWS
from gradtape.compiler.cpu.llvm.link import Cpu
from gradtape.compiler.kernel import Axis, Buffer, Kernel, Place, Stage, Store
from gradtape.compiler.product import Product
from gradtape.core.scalar import Scalar, bitwise_or, convert, left_shift

_UINT16, _UINT32 = np.dtype(np.uint16), np.dtype(np.uint32)
# Shorter sums are not worth another step.
_LEAST = 64


def with_pairs(product: Product, cpu: Cpu, name: str) -> Sequence[Kernel | Product]:
    """The product, or a kernel that puts its first factor in pairs and a product of those."""
    one = product.calls == ((0, 0, 0, 1),) and product.transpose_a
    both = all(buffer.dtype.name == "bfloat16" for buffer in (product.a, product.b))
    m, n, k = product.m, product.n, product.k
    if not (cpu.has_pairs and one and both) or k % 2 or n % PAIRED_LANES:
        return (product,)
    if m < PAIRED_ROWS or k < _LEAST:
        return (product,)
    pairs = Buffer(f"{product.c}_pairs", (k // 2, m), _UINT32, "temporary")
    pair, row = Axis("pair", k // 2), Axis("row", m)
    low, high = (
        Scalar("load", (), product.a.dtype, extra=Place(product.a, ((pair, 2 * m), (row, 1)), at))
        for at in (0, m)
    )
    bits = [convert(Scalar("bits", (x,), _UINT16), _UINT32) for x in (low, high)]
    value = bitwise_or(bits[0], left_shift(bits[1], 16))
    store = Store(Place(pairs, ((pair, m), (row, 1)), 0), value)
    kernel = Kernel(f"{name}_{pairs}", [pair, row], [Stage((store,), ())], ["pairs"])
    return kernel, product._replace(a=pairs, k=k // 2)
