"""Optimizers, flat vectors of nested containers, fixed points and graphs."""

from gradtape.compat.autograd.misc.flatten import flatten as flatten
from gradtape.compat.autograd.misc.tracers import const_graph as const_graph
