"""The runtime of compiled code: thread pool, kept memory, entry points, cache of object files."""
