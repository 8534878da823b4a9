"""Random numbers: `gt.random`; the drawing functions are also found at `gt` itself."""

from gradtape.help.public import make_public as _make_public
from gradtape.ops.generator import Generator, default_generator, manual_seed
from gradtape.ops.random import normal, rand, randn, uniform
from gradtape.ops.random_discrete import bernoulli, permutation, randint

__all__ = [
    "Generator",
    "default_generator",
    "manual_seed",
    "rand",
    "randn",
    "uniform",
    "normal",
    "bernoulli",
    "randint",
    "permutation",
]

_make_public(globals())
