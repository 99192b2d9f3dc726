"""Give back a value that is small here and large where it is written out.

family: output floods
canary: flood
stops: full, container
root: no
"""

text = "x" * 1_000_000
[text] * 60
