"""Optimizers: they give leaf tensors new values from their gradients."""

from gradtape.optim.adam import Adam
from gradtape.optim.base import Optimizer
from gradtape.optim.sgd import SGD

__all__ = ["Optimizer", "SGD", "Adam"]
