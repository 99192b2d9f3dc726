"""Fork by the bare system call, past the C library.

family: bombs
canary: processes, claim
stops: full, container
root: no
alone: yes
"""

import ctypes
import os
import time

libc = ctypes.CDLL(None)
for _ in range(60):
    child = libc.syscall(NR["clone"], 17, 0, 0, 0, 0)
    if child == 0:
        time.sleep(0.4)
        os._exit(0)
    if child < 0:
        raise OSError("refused")
print(CLAIM)
time.sleep(0.3)
