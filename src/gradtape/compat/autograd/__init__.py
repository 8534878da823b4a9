"""The interface of HIPS autograd on gradtape: change the import, and keep the program.

>>> from gradtape.compat.autograd import elementwise_grad, grad
>>> import gradtape.compat.autograd.numpy as np
>>> grad(lambda x: np.sum(np.tanh(x)))(np.zeros(2))
array([1., 1.])

`install()` puts it in the place of autograd for other packages.
"""

from typing import TYPE_CHECKING

from gradtape.compat.autograd import (
    builtins as builtins,
    core as core,
    differential_operators as differential_operators,
    extend as extend,
    numpy as numpy,
    tracer as tracer,
    util as util,
    wrap_util as wrap_util,
)
from gradtape.compat.autograd.builtins import (
    dict as dict,
    isinstance as isinstance,
    list as list,
    tuple as tuple,
    type as type,
)
from gradtape.compat.autograd.core import primitive as primitive
from gradtape.compat.autograd.differential_operators import (
    checkpoint as checkpoint,
    deriv as deriv,
    elementwise_grad as elementwise_grad,
    grad as grad,
    grad_and_aux as grad_and_aux,
    grad_named as grad_named,
    hessian as hessian,
    hessian_tensor_product as hessian_tensor_product,
    hessian_vector_product as hessian_vector_product,
    holomorphic_grad as holomorphic_grad,
    jacobian as jacobian,
    make_ggnvp as make_ggnvp,
    make_hvp as make_hvp,
    make_jvp as make_jvp,
    make_vjp as make_vjp,
    multigrad_dict as multigrad_dict,
    tensor_jacobian_product as tensor_jacobian_product,
    value_and_grad as value_and_grad,
    vector_jacobian_product as vector_jacobian_product,
)
from gradtape.compat.autograd.installation import install as install, uninstall as uninstall
from gradtape.errors import MissingNameError as _MissingNameError
from gradtape.locks import load as _load

if TYPE_CHECKING:
    from gradtape.compat.autograd import misc as misc, scipy as scipy, test_util as test_util

# The version of autograd whose interface it is.
__version__ = "1.9.1"
_MODULES = ("misc", "scipy", "test_util")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _load(f"{__name__}.{name}")
    raise _MissingNameError(name, lambda _: "nor has autograd 1.9", f"module {__name__!r}")


def __dir__() -> "list[str]":
    return sorted({*globals(), *_MODULES} - {"TYPE_CHECKING"})
