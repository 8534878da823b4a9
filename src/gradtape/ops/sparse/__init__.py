"""Sparse matrices."""

# Register matrices as containers of their numbers before any can exist.
from gradtape.ops.sparse import containers as containers
