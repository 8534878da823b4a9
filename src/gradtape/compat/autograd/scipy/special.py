"""`autograd.scipy.special`: SciPy's module with functions that take tensors."""

from gradtape.compat.autograd.mirror import mirror as _mirror

_mirror(globals(), "gradtape.scipy.special", keep=True)
