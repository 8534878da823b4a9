"""Random numbers: `gt.random`; the drawing functions are also found at `gt` itself."""

from gradtape.advice.public import make_public as _make_public
from gradtape.ops.generator import (
    Generator as Generator,
    default_generator as default_generator,
    manual_seed as manual_seed,
)
from gradtape.ops.random import normal as normal, rand as rand, randn as randn, uniform as uniform
from gradtape.ops.random_discrete import (
    bernoulli as bernoulli,
    permutation as permutation,
    randint as randint,
)

_make_public(globals())
