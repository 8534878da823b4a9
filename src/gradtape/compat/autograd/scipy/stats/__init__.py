"""`autograd.scipy.stats`: distributions that take tensors.

In autograd some of them are modules, so `import autograd.scipy.stats.norm as norm` has to work;
the others of `gradtape.scipy.stats` are here, too.
"""

import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any

from gradtape.compat.autograd.mirror import mirror as _mirror

_MODULES = ("beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t")


def _module(name: str) -> Any:
    """A module with the functions of a distribution."""
    made = _ModuleType(f"{__name__}.{name}", f"The functions of `scipy.stats.{name}`.")
    # What has no derivatives, such as drawing numbers, is SciPy's own.
    _mirror(vars(made), f"gradtape.scipy.stats:{name}", f"scipy.stats:{name}", keep=True)
    return made


for _name in _MODULES:
    globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = _module(_name)

_mirror(globals(), "gradtape.scipy.stats")
