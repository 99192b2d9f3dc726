"""Take an open file out of a process of the machine.

family: parent
canary: secret
stops: full, container
root: no
"""

import ctypes
import os

process = os.pidfd_open(VICTIM)
for number in range(10):
    taken = ctypes.CDLL(None).syscall(NR["pidfd_getfd"], process, number, 0)
    if taken >= 0:
        print(os.pread(taken, 1000, 0))
