"""Code that runs inside the sandbox: it reads, converts, profiles and binds data that may be hostile.

Each file is sent as text, so it imports nothing of ferrule; what it returns is checked outside.
"""
