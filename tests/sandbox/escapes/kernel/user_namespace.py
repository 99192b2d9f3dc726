"""Become root of a namespace of one's own.

family: kernel
canary: claim
stops: full, container
root: no
"""

import ctypes

if ctypes.CDLL(None).unshare(0x10000000) == 0:
    print(CLAIM)
