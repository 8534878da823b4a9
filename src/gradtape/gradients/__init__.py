"""Tools for gradients."""
