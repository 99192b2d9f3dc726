"""How a command is contained in each tier: namespaces (full), Landlock (container), Seatbelt (macOS)."""
