"""Passes: functions from a graph to an equivalent graph. One per file.

- `simplify`: computes nodes that depend on numbers only (`fold`), and applies a table of rules
  (`rules`), each of which keeps every bit of the result.
- `share`: computes repeated expressions once.
- `dead`: drops nodes that nothing reads.
- `hopeful`: leaves out what settles 0·∞, and watches what depends on it.

`compiler.pipeline` has the order in which they run.
"""
