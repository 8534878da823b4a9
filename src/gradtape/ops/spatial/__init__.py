"""Distances between points, under the names of `scipy.spatial`."""
