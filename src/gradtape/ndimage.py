"""Interpolation and filters of images, under the names of `scipy.ndimage`."""

__all__: list[str] = []
