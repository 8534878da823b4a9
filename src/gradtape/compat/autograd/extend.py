"""Tools for functions with derivatives of their own: `primitive`, `defvjp` and others."""

from gradtape.compat.autograd.core import (
    JVPNode as JVPNode,
    SparseObject as SparseObject,
    VJPNode as VJPNode,
    VSpace as VSpace,
    def_linear as def_linear,
    defjvp as defjvp,
    defjvp_argnum as defjvp_argnum,
    defjvp_argnums as defjvp_argnums,
    defvjp as defvjp,
    defvjp_argnum as defvjp_argnum,
    defvjp_argnums as defvjp_argnums,
    primitive as primitive,
    vspace as vspace,
)
from gradtape.compat.autograd.tracer import (
    Box as Box,
    notrace_primitive as notrace_primitive,
    register_notrace as register_notrace,
)
