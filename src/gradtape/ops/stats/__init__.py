"""Distributions: densities, tails, quantiles and moments, differentiable in all parameters."""
