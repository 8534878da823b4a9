"""Operations that are slower than the bar of the per-op table, and why."""

SLOWER: dict[str, str] = {}
