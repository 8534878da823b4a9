"""Neural networks: `gt.nn.functional` has their operations as functions."""

from gradtape.namespaces import complete as _complete
from gradtape.nn import functional as functional
from gradtape.nn.functional import *  # noqa: F403

_complete(globals(), "functional")
