"""First values of parameters: written in place as in `torch.nn.init`, or as NumPy arrays."""

from gradtape.advice.public import make_public as _make_public
from gradtape.nn.array_rng import ArrayRng as ArrayRng
from gradtape.nn.fans import Fans as Fans, fans as fans
from gradtape.nn.in_place import (
    calculate_gain as calculate_gain,
    constant_ as constant_,
    dirac_ as dirac_,
    eye_ as eye_,
    glorot_normal_ as glorot_normal_,
    glorot_uniform_ as glorot_uniform_,
    he_normal_ as he_normal_,
    he_uniform_ as he_uniform_,
    kaiming_normal_ as kaiming_normal_,
    kaiming_uniform_ as kaiming_uniform_,
    normal_ as normal_,
    ones_ as ones_,
    orthogonal_ as orthogonal_,
    sparse_ as sparse_,
    trunc_normal_ as trunc_normal_,
    uniform_ as uniform_,
    xavier_normal_ as xavier_normal_,
    xavier_uniform_ as xavier_uniform_,
    zeros_ as zeros_,
)

_make_public(globals())
