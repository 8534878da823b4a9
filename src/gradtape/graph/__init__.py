"""Graphs of op calls: what a function did, recorded at abstract values."""
