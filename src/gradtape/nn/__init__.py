"""Neural networks: `gt.nn.functional` has their operations as functions."""

from gradtape.advice.public import make_public as _make_public
from gradtape.nn import functional as functional
from gradtape.nn.functional import *  # noqa: F403

_make_public(globals(), "functional")
