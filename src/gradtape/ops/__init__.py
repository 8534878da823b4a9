"""Every op, one family per file: its forward and its rules stand together there.

Importing this package defines the ops that every program meets, and gives tensors their operators
and methods. The packages below it are families that not every program uses. Their modules are
loaded one by one, when a function is first used, by gradtape's name or by that of NumPy or SciPy.
"""

from gradtape import containers
from gradtape.core import tracked_number
from gradtape.core.lazy import Deferred
from gradtape.core.needed_ops import needed
from gradtape.core.op import op_of
from gradtape.ops import (
    activation as activation,
    arithmetic as arithmetic,
    assign as assign,
    cast as cast,
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
    joined as joined,
    like as like,
    locate as locate,
    logaddexp as logaddexp,
    matmul as matmul,
    methods as methods,
    moments as moments,
    nonzero as nonzero,
    norm as norm,
    pad as pad,
    pad_modes as pad_modes,
    product as product,
    protocols as protocols,
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

needed.fill(
    add_op=op_of(arithmetic.add),
    as_object=tracked_number.as_object,
    assign_in_place=write.write_item,
    astype=cast.astype,
    broadcast_to=shape.broadcast_to,
    conj=cast.conj,
    copy=cast.copy,
    getitem=index.getitem,
    isfinite=comparison.isfinite,
    joined=joined.joined,
    mask=select.mask,
    moveaxis=shape.moveaxis,
    ones_like=like.ones_like,
    real=cast.real,
    reshape=shape.reshape,
    setitem=assign.setitem,
    stop_gradient=cast.stop_gradient,
    sum=reduce.sum,
    sum_op=op_of(reduce.sum_over),
    with_sparse=Deferred("gradtape.ops.sparse.operators:with_sparse"),
)
containers.objects.join = joined.joined
methods.install()
tracked_number.install()
