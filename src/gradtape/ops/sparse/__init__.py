"""Sparse matrices."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.sparse import (
        arrays as arrays,
        product as product,
        solve as solve,
    )
