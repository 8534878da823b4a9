"""Interpolation and filters of images."""
