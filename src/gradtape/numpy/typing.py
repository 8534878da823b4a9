"""`numpy.typing` as it is, for annotations in code that imports `gradtape.numpy`."""

from numpy.typing import *  # noqa: F403
