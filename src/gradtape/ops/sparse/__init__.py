"""Sparse matrices."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.sparse import (
        arrays as arrays,
        containers as containers,
        functions as functions,
        making as making,
        places as places,
        product as product,
        solve as solve,
    )
