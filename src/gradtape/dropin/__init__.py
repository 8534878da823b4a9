"""Modules under the names of NumPy and SciPy that take tensors wherever those take arrays.

Without a tensor among the arguments a call is NumPy's or SciPy's own, to the bit. With one, it goes
to the function of ours that answers for it.
"""
