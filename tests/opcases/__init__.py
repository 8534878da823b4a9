"""Samples for every op, one file per family of `gradtape.ops`; run by `tests/test_ops.py`."""
