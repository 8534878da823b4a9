"""Layers: modules over the functions of `gradtape.ops.nn`."""
