"""Linear algebra."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.linalg import (
        cholesky as cholesky,
        determinant as determinant,
        solve as solve,
    )
