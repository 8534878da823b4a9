"""Initial value problems and integrals, with derivatives."""
