"""Mixed precision: ops in 16 bits where that is safe, loss scaling, float32 master weights."""

from gradtape.advice.public import make_public as _make_public
from gradtape.amp.autocast import autocast as autocast
from gradtape.amp.config import AmpConfig as AmpConfig
from gradtape.amp.loss_scaler import (
    LossScaler as LossScaler,
    Overflow as Overflow,
    select as select,
)
from gradtape.amp.master_weights import MasterWeights as MasterWeights
from gradtape.amp.precision import PrecisionMode as PrecisionMode, precision_of as precision_of

_make_public(globals())
