"""The parent's side of a Python run: manages zygotes and children, sends requests, parses answers as hostile data."""
