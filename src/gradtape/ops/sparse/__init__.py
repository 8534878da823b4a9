"""Sparse matrices."""

# Matrices are containers of their numbers from the moment there are any.
from gradtape.ops.sparse import containers as containers
