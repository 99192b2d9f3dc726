"""The parent's side of a Python run: zygotes and children, requests to them, answers read as hostile data."""
