"""Arrays in files: saved whole or not at all, and loaded without executing anything."""
