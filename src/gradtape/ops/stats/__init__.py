"""Densities of common distributions."""
