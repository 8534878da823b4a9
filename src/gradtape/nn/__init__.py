"""Neural networks: operations as functions (`gt.nn.functional`), first values (`gt.nn.init`)."""

from gradtape.advice.public import make_public as _make_public
from gradtape.nn import functional as functional, init as init
from gradtape.nn.functional import *  # noqa: F403

_make_public(globals(), "functional", "init")
