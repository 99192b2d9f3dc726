"""Make a process that is root of a namespace of its own.

family: kernel
canary: claim
stops: full, container
root: no
"""

import ctypes
import os

child = ctypes.CDLL(None).syscall(NR["clone"], 0x10000000 | 17, 0, 0, 0, 0)
if child == 0:
    os._exit(0)
if child > 0:
    print(CLAIM)
