"""Random numbers: `gt.random`; the drawing functions are also found at `gt` itself."""

from gradtape.core.spellings import missing_from as _missing_from
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

__getattr__ = _missing_from("random")
