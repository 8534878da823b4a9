"""Optimizers: pure rules from gradients to new parameters, and classes that keep the state."""

from gradtape.advice.public import make_public as _make_public
from gradtape.optim.adam import Adam as Adam, AdamRule as AdamRule
from gradtape.optim.environment import EnvironmentOptimizer as EnvironmentOptimizer
from gradtape.optim.optimizer import Optimizer as Optimizer
from gradtape.optim.rule import Rule as Rule
from gradtape.optim.sgd import SGD as SGD, SGDRule as SGDRule

_make_public(globals())
