"""Filters and convolutions, under the names of `scipy.signal`."""

__all__: list[str] = []
