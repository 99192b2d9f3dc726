"""Complain more than anyone wants to hear.

family: output floods
canary: flood
stops: full, container
root: no
"""

import os

for _ in range(40):
    os.write(2, b"x" * 1_000_000)
