"""`autograd.numpy.random`: `numpy.random` as it is."""

import typing as _typing

from gradtape.compat.autograd.mirror import mirror as _mirror

_mirror(globals(), "gradtape.numpy.random", keep=True)

if _typing.TYPE_CHECKING:
    from numpy.random import *  # noqa: F403
