"""Lazy graphs: placeholders and variables, evaluated by the graphs that `gt.jit` compiles."""
