"""Array modules: where arrays live and which module computes on them."""

from gradtape.backends.modules import array_module, is_raw, to_numpy

__all__ = ["array_module", "is_raw", "to_numpy"]
