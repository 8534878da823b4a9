"""`autograd.scipy.misc`: where SciPy once had `logsumexp`."""

from gradtape.compat.autograd.mirror import mirror as _mirror

_mirror(globals(), "gradtape.scipy.special", keep=True)
