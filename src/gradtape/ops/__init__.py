"""Every op, one family per file: its forward and its rules stand together there.

Importing this package fills the registry and gives tensors their operators and methods; after that
the registry is closed.
"""

from gradtape.core.op import registry
from gradtape.ops import (
    activation as activation,
    arithmetic as arithmetic,
    assign as assign,
    cast as cast,
    close as close,
    comparison as comparison,
    contract as contract,
    creation as creation,
    cumulative as cumulative,
    diagonal as diagonal,
    einsum as einsum,
    exponential as exponential,
    gather as gather,
    index as index,
    join as join,
    like as like,
    linalg as linalg,
    locate as locate,
    matmul as matmul,
    methods as methods,
    moments as moments,
    norm as norm,
    pad as pad,
    product as product,
    protocols as protocols,
    random as random,
    random_discrete as random_discrete,
    rearrange as rearrange,
    reduce as reduce,
    rounding as rounding,
    select as select,
    shape as shape,
    softmax as softmax,
    special as special,
    split as split,
    trigonometric as trigonometric,
    which as which,
)

methods.install()
protocols.install()
registry.close()
