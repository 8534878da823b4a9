"""Optimizers: one class is a pure function from gradients to parameters, and steps of tensors."""

from gradtape.advice.public import make_public as _make_public
from gradtape.optim.adam import (
    LAMB as LAMB,
    AdaBelief as AdaBelief,
    Adam as Adam,
    AdamW as AdamW,
    NAdam as NAdam,
    RAdam as RAdam,
)
from gradtape.optim.adaptive import (
    Adadelta as Adadelta,
    Adagrad as Adagrad,
    Lion as Lion,
    RMSprop as RMSprop,
)
from gradtape.optim.averaging import (
    AveragedModel as AveragedModel,
    WeightAverage as WeightAverage,
    update_bn as update_bn,
)
from gradtape.optim.environment import EnvironmentOptimizer as EnvironmentOptimizer
from gradtape.optim.lbfgs import LBFGS as LBFGS
from gradtape.optim.optimizer import Optimizer as Optimizer
from gradtape.optim.plateau import Plateau as Plateau
from gradtape.optim.schedulers import (
    ChainedScheduler as ChainedScheduler,
    ConstantLR as ConstantLR,
    CosineAnnealingLR as CosineAnnealingLR,
    CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
    ExponentialLR as ExponentialLR,
    LambdaLR as LambdaLR,
    LinearLR as LinearLR,
    LRScheduler as LRScheduler,
    MultiStepLR as MultiStepLR,
    OneCycleLR as OneCycleLR,
    PolynomialLR as PolynomialLR,
    ReduceLROnPlateau as ReduceLROnPlateau,
    SequentialLR as SequentialLR,
    StepLR as StepLR,
)
from gradtape.optim.schedules import (
    Schedule as Schedule,
    constant as constant,
    cosine as cosine,
    cosine_restarts as cosine_restarts,
    exponential as exponential,
    linear as linear,
    milestones as milestones,
    one_cycle as one_cycle,
    polynomial as polynomial,
    product as product,
    sequence as sequence,
    staircase as staircase,
    warmup as warmup,
)
from gradtape.optim.sgd import SGD as SGD
from gradtape.optim.soap import SOAP as SOAP
from gradtape.optim.sophia import Sophia as Sophia
from gradtape.optim.stepping import elementwise as elementwise
from gradtape.optim.wrappers import SAM as SAM, Lookahead as Lookahead

_make_public(globals())
