"""Floor 2: a function becomes a tool, and a registry offers it."""
