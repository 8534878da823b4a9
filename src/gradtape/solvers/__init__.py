"""Solvers whose derivatives are those of the solution, not of the steps that led to it."""
