"""Array modules: where arrays live and which module computes on them."""

from gradtape.backends.modules import array_module, as_index, is_raw, make_array, to_numpy

__all__ = ["array_module", "as_index", "is_raw", "make_array", "to_numpy"]
