"""Arrays and graphs in files: saved whole or not at all, loaded without executing anything."""
