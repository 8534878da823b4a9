"""What compiled code runs on: the thread pool, matrix products, the cache of object files."""
