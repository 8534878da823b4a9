"""Clipping gradients; all of it is in `gt.gradients`, too."""

from gradtape.advice.public import make_public as _make_public
from gradtape.gradients.autoclip import AutoClip as AutoClip
from gradtape.gradients.clipping import (
    adaptive_clip as adaptive_clip,
    clip_by_global_norm as clip_by_global_norm,
    clip_by_norm as clip_by_norm,
    clip_by_value as clip_by_value,
    global_norm as global_norm,
)

_make_public(globals())
