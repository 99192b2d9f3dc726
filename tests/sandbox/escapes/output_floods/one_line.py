"""Print one line that is forty megabytes long.

family: output floods
canary: flood
stops: full, container
root: no
"""

print("x" * 40_000_000)
