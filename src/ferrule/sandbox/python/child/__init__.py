"""The code that runs inside the sandbox: the zygote, the child of each run, and a session's process.

Imported before the packages are loaded and part of every fork, so it imports little, and only the standard library.
"""
