"""Tools to check and watch what a computation does."""
