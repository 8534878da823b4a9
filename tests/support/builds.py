"""What differs between builds of Python and releases of SciPy, and without native pieces."""

from __future__ import annotations

import sys
import sysconfig

import pytest
import scipy

from gradtape import config

# Builds without the interpreter lock; everywhere else compiled functions have native entry points.
NO_LOCK = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
NO_ENTRY = NO_LOCK or not config.uses("entry")

# Whether compiled functions contain loops, linear algebra and products.
NATIVE = all(map(config.uses, ("loops", "linalg", "products")))

needs_entry = pytest.mark.skipif(NO_ENTRY, reason="switched off, or no interpreter lock")
needs_lock = pytest.mark.skipif(NO_LOCK, reason="this build has no interpreter lock")
SCIPY = tuple(map(int, scipy.__version__.split(".")[:2]))
needs_scipy_1_17 = pytest.mark.skipif(SCIPY < (1, 17), reason="before SciPy 1.17 it was otherwise")
starts_anew = pytest.mark.skipif(
    bool(getattr(sys.flags, "thread_inherit_context", False)),
    reason="threads begin with the context variables of who starts them",
)
