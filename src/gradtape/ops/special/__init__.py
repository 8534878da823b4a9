"""Special functions beyond the error function."""
