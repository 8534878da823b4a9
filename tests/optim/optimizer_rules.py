"""The rules of optimizers, with numbers that take every way through each."""

import numpy as np

# Those that PyTorch has.
IN_TORCH = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.02, "amsgrad": True, "weight_decay": 0.2, "betas": (0.5, 0.8)}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.02, "amsgrad": True, "maximize": True, "weight_decay": 0.3}),
    ("NAdam", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.1}),
    ("RAdam", {"lr": 0.02, "weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "betas": (0.8, 0.9)}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"centered": True, "alpha": 0.9}),
]
# One step of each rule that PyTorch lacks, on what is remembered.


def adabelief(x, g, m, s, t, lr=1e-3, b=0.9, b2=0.999, eps=1e-16, decay=0.0):
    m = b * m + (1 - b) * g
    s = b2 * s + (1 - b2) * (g - m) ** 2 + eps
    ahead = lr * (m / (1 - b**t)) / (np.sqrt(s / (1 - b2**t)) + eps)
    return x - lr * decay * x - ahead, m, s


def lion(x, g, m, s, t, lr=1e-4, b=0.9, b2=0.99, decay=0.0):
    ahead = np.sign(b * m + (1 - b) * g)
    return x - lr * (ahead + decay * x), b2 * m + (1 - b2) * g, s


def lamb(x, g, m, s, t, lr=1e-3, b=0.9, b2=0.999, eps=1e-6, decay=0.0):
    m, s = b * m + (1 - b) * g, b2 * s + (1 - b2) * g * g
    r = (m / (1 - b**t)) / (np.sqrt(s / (1 - b2**t)) + eps) + decay * x
    sizes = np.linalg.norm(x), np.linalg.norm(r)
    return x - lr * (sizes[0] / sizes[1] if all(sizes) else 1.0) * r, m, s


NOT_IN_TORCH = [
    ("AdaBelief", {}, adabelief, {}),
    ("AdaBelief", {"lr": 0.1, "weight_decay": 0.1}, adabelief, {"lr": 0.1, "decay": 0.1}),
    ("Lion", {}, lion, {}),
    ("Lion", {"betas": (0.5, 0.8), "weight_decay": 0.3}, lion, {"b": 0.5, "b2": 0.8, "decay": 0.3}),
    ("LAMB", {}, lamb, {}),
    ("LAMB", {"lr": 0.1, "weight_decay": 0.3}, lamb, {"lr": 0.1, "decay": 0.3}),
]
EVERY = [(name, options) for name, options, *_ in IN_TORCH + NOT_IN_TORCH]
