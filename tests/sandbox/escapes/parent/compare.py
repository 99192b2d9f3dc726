"""Ask the kernel what this process shares with one of the machine.

family: parent
canary: claim
stops: full, container
root: no
"""

import ctypes
import os

if ctypes.CDLL(None).syscall(NR["kcmp"], os.getpid(), VICTIM, 1, 0, 0) >= 0:
    print(CLAIM)
