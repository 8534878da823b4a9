"""Every op, one family per file: its forward and its rules stand together there.

Importing this package fills the registry and gives tensors their operators and methods. The
packages below it are families that not every program uses; each is loaded when one of its
functions is first looked for, by gradtape's name or by that of NumPy or SciPy.
"""

from gradtape.core.op import registry

with registry.opened():
    from gradtape.ops import (
        activation as activation,
        arithmetic as arithmetic,
        assign as assign,
        cast as cast,
        close as close,
        comparison as comparison,
        contract as contract,
        counted as counted,
        creation as creation,
        cumulative as cumulative,
        device as device,
        diagonal as diagonal,
        einsum as einsum,
        erf as erf,
        exponential as exponential,
        gather as gather,
        index as index,
        inspection as inspection,
        join as join,
        like as like,
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
        split as split,
        trigonometric as trigonometric,
        which as which,
        write as write,
    )

device.install()
inspection.install()
methods.install()
protocols.install()
registry.deferred += [
    "gradtape.ops.arrays",
    "gradtape.ops.linalg",
    "gradtape.ops.fft",
    "gradtape.ops.special",
    "gradtape.ops.nn",
    "gradtape.ops.signal",
    "gradtape.ops.ndimage",
    "gradtape.ops.sparse",
]
