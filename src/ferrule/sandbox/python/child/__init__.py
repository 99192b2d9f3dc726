"""What runs inside the sandbox: the zygote, the child of each run, and a session's process.

Imported before the packages are loaded, and counted in every fork: the standard library and little of it.
"""
