"""Samples of dtype changes, complex parts, copies, and cutting history."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape.errors import ShapeError
from opcases.case import At, OpCase, Raises, draw, with_torch

X = draw(2, 3)
DTYPES = (np.float64, np.float32, np.complex128)


def _real_of_complex(x: Any, y: Any) -> Any:
    # The chain goes through complex numbers: |z|² − Im(z̄)·Re(z) of z = x + iy.
    z = x + 1j * y
    return gt.real(gt.conj(z) * z) - gt.imag(gt.conj(z)) * gt.real(z)


SAMPLES = [
    OpCase(gt.astype, (X, np.float64), lambda x, dtype: x.astype(dtype)),
    OpCase(
        lambda x: gt.astype(x, np.int64),
        (X,),
        lambda x: x.astype(np.int64),
        ops=("astype",),
        label="astype-int",
        differentiable=False,
    ),
    OpCase(gt.copy, (X,), np.copy, dtypes=DTYPES),
    OpCase(gt.stop_gradient, (X,), lambda x: x, differentiable=False, dtypes=DTYPES),
    OpCase(
        gt.scale_gradient,
        (X, 0.25),
        lambda x, _factor: x,
        differences=False,  # the derivative is another one on purpose
        at=[At(([1.0, -2.0], 0.25), ([0.25, 0.25], 0.0)), At((3.0, -1.0), (-1.0, 0.0))],
        raises=[Raises((X, X), ShapeError, r"factor of shape \(2, 3\), expected one number")],
    ),
    OpCase(gt.conj, (X,), np.conj, elementwise=True, dtypes=DTYPES),
    OpCase(gt.real, (X,), np.real, elementwise=True, dtypes=DTYPES),
    OpCase(gt.imag, (X,), np.imag, elementwise=True, dtypes=DTYPES),
    OpCase(
        _real_of_complex,
        (X, draw(2, 3, seed=1)),
        lambda x, y: x * x + y * y + x * y,
        ops=("real", "imag", "conj"),
        label="through-complex",
    ),
]


def torch_imag(torch: Any, x: Any) -> Any:
    """PyTorch has it for complex numbers only."""
    return torch.imag(x.to(torch.complex128))


def torch_through_complex(torch: Any, x: Any, y: Any) -> Any:
    z = torch.complex(x, y)
    return torch.real(z.conj() * z) - torch.imag(z.conj()) * torch.real(z)


TORCH = {
    "astype": lambda torch, x, dtype: x.to(torch.float64),
    "<lambda>-astype-int": lambda torch, x: x.to(torch.int64),
    "copy": "clone",
    "stop_gradient": lambda torch, x: x.detach(),
    "conj": "conj",
    "real": "real",
    "imag": torch_imag,
    "_real_of_complex": torch_through_complex,
}

CASES = with_torch(TORCH, SAMPLES)
