"""Functions of `torch.nn.utils`, which write to the gradients of parameters."""

from gradtape.advice.public import make_public as _make_public
from gradtape.nn.in_place_clipping import (
    clip_grad_norm_ as clip_grad_norm_,
    clip_grad_value_ as clip_grad_value_,
)

_make_public(globals())
