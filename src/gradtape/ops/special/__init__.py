"""Special functions beyond the error function."""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops.special import (
        entropy as entropy,
        gamma as gamma,
    )
