"""Densities of common distributions, under the names of `scipy.stats`."""

__all__: list[str] = []
