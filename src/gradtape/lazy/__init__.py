"""Lazy graphs: programs that are built first, and evaluated for what is fed to them."""
