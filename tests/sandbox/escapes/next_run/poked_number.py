"""Overwrite in memory a number that the interpreter shares.

family: next run
canary: next
stops: full, container
root: no
"""

import ctypes

ctypes.c_uint32.from_address(id(251) + int.__basicsize__).value = 252

# ---- the next run ----
if str(int("251")) == "252":
    print(CLAIM)
