"""`autograd.numpy`: NumPy with functions that take tensors, which is `gradtape.numpy`."""

from __future__ import annotations

import typing as _typing

import numpy as _np

from gradtape.compat.autograd.mirror import mirror as _mirror
from gradtape.compat.autograd.numpy import (
    fft as fft,
    linalg as linalg,
    numpy_boxes as numpy_boxes,
    numpy_jvps as numpy_jvps,
    numpy_vjps as numpy_vjps,
    numpy_vspaces as numpy_vspaces,
    numpy_wrapper as numpy_wrapper,
    random as random,
)
from gradtape.compat.autograd.numpy.numpy_wrapper import (
    array_from_args as array_from_args,
    column_stack as column_stack,
    concatenate as concatenate,
    concatenate_args as concatenate_args,
    dstack as dstack,
    hstack as hstack,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    make_diagonal as make_diagonal,
    metadata as metadata,
    stack as stack,
    vstack as vstack,
    where as where,
)

__version__ = _np.__version__

_mirror(globals(), "gradtape.numpy", keep=True)

if _typing.TYPE_CHECKING:
    from numpy import *  # type: ignore[assignment, no-redef] # noqa: F403
