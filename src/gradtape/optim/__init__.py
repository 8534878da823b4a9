"""Optimizers: pure rules from gradients to new parameters, and classes that keep the state."""

from gradtape.optim.adam import Adam, AdamRule
from gradtape.optim.optimizer import Optimizer
from gradtape.optim.rule import Rule
from gradtape.optim.sgd import SGD, SGDRule

__all__ = ["Optimizer", "SGD", "Adam", "Rule", "SGDRule", "AdamRule"]
