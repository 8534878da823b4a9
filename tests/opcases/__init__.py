"""Samples for every op, one file per family of `gradtape.ops`; run by `tests/ops/test_ops.py`."""
