"""Sparse Jacobians and Hessians: pattern from a trace, colours, compressed sweeps."""
