"""Functions of NumPy that not every program uses: sorting, statistics, polynomials, and the like.

The names in `__all__` are found at `gradtape` itself.
"""

from gradtape.core.op import registry

with registry.opened():
    pass

__all__: list[str] = []
