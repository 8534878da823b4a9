"""Functions at the top of a module, as they are sent to other processes."""

import numpy as np

import gradtape as gt


def loss(x, scale=1.0):
    return np.sum(np.sin(x) * scale)


@gt.jit
def decorated(x):
    return np.tanh(x) * 2.0


@gt.jit(static_argnames="power")
def powered(x, power=2):
    return np.sum(x**power)


renamed = gt.jit(loss)
slope = gt.grad(loss)
compiled_slope = gt.jit(gt.value_and_grad(loss))
curvature = gt.vmap(gt.hessian(loss))
jacobians = tuple(transform(np.sin) for transform in (gt.jacfwd, gt.jacrev, gt.jacobian))


@gt.custom_vjp
def clipped(x):
    return np.clip(x, -1.0, 1.0)


@clipped.defvjp
def straight_through(ct, out, x):
    return (ct,)


other_clipped = gt.custom_vjp(np.abs)
other_clipped.defvjp(straight_through)


@gt.checkpoint
def checkpointed(x):
    return np.tanh(x) * 2.0


checkpointed_loss = gt.checkpoint(loss, policy=gt.keep_ops("sin"))
checkpointed_sine = gt.checkpoint(np.sin, policy=gt.keep_up_to(100))


@gt.no_grad()
def silent(x):
    return x * 2.0


class Model:
    """An object with compiled functions of every kind."""

    def __init__(self, factor):
        self.factor = factor
        self.attribute = gt.jit(self.plain)

    def plain(self, x):
        return self.factor * x

    @gt.jit
    def step(self, x):
        return self.factor * x

    other = gt.jit(plain)

    @gt.checkpoint
    def checkpointed(self, x):
        return self.factor * x

    @gt.custom_vjp
    def custom(self, x):
        return self.factor * x

    @custom.defvjp
    def rule(self, ct, out, x):
        return (10 * ct * self.factor,)

    def __call__(self, x):
        return self.factor * x
