"""Neural networks: `gt.nn.functional` has their operations as functions."""

from gradtape.core.spellings import missing_from as _missing_from
from gradtape.nn import functional as functional
from gradtape.nn.functional import *  # noqa: F403

__getattr__ = _missing_from("nn")
