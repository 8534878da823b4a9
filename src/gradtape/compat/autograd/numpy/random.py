"""`autograd.numpy.random`: NumPy's module with functions that take tensors."""

from gradtape.compat.autograd.mirror import mirror as _mirror

_mirror(globals(), "gradtape.numpy.random", keep=True)
