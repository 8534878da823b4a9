"""Passes: functions from a graph to a graph that computes the same. One per file.

- `fold`: computes what depends on numbers only.
- `simplify`: applies a table of rules (`rules`), each of which keeps every bit of the result.
- `share`: computes what is there twice once.
- `dead`: drops what nobody reads.
- `hopeful`: leaves out what settles 0·∞, and watches what depends on it.

`compiler.pipeline` has the order in which they run.
"""
