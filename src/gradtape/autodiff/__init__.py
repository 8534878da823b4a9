"""Differentiation as users see it: tapes, transforms, custom rules, built on `core` and `ops`."""
