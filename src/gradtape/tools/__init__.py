"""Tools to check and observe computations."""
