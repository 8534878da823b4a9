"""Which results to retain on a forward run whose backward run follows, under a memory budget.

Pure algorithms on lists of `Item`: nothing here knows tapes or graphs.
`docs/internals-checkpointing.md` explains them.

`item` says what a list and a planner are, `steps` plays a plan through, `fixed`, `revolve`,
`optimal` and `auto` are the planners, `online` decides while the list still grows.
"""
