"""Fail with a message of forty megabytes.

family: output floods
canary: flood
stops: full, container
root: no
"""

raise ValueError("x" * 40_000_000)
