"""Interpolation, with derivatives in values, in points and in knots."""
