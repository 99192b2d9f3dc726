"""Give back a value of forty megabytes.

family: output floods
canary: flood
stops: full, container
root: no
"""

"x" * 40_000_000
