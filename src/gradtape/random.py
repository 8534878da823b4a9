"""Random numbers: `gt.random`; the drawing functions are also found at `gt` itself."""

from gradtape.advice.public import make_public as _make_public
from gradtape.ops.generator import (
    Generator as Generator,
    default_generator as default_generator,
    get_rng_state as get_rng_state,
    manual_seed as manual_seed,
    set_rng_state as set_rng_state,
)
from gradtape.ops.random import normal as normal, rand as rand, randn as randn, uniform as uniform
from gradtape.ops.random_discrete import (
    bernoulli as bernoulli,
    categorical as categorical,
    permutation as permutation,
    poisson as poisson,
    randint as randint,
)
from gradtape.ops.random_positive import (
    beta as beta,
    dirichlet as dirichlet,
    exponential as exponential,
    gamma as gamma,
    log_normal as log_normal,
)

_make_public(globals())
