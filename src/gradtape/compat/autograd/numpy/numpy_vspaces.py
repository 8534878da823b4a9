"""The vector spaces of arrays."""

from gradtape.compat.autograd.vspaces import (
    ArrayVSpace as ArrayVSpace,
    ComplexArrayVSpace as ComplexArrayVSpace,
    NamedTupleVSpace as NamedTupleVSpace,
    VSpace as VSpace,
)
