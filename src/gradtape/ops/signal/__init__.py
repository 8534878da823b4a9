"""Filters and convolutions."""
