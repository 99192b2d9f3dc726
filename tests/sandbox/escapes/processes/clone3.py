"""Make a process with the newest call for it.

family: processes
canary: claim
stops: full, container
root: no
"""

import ctypes
import os
import struct

arguments = struct.pack("11Q", 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
child = ctypes.CDLL(None).syscall(NR["clone3"], arguments, len(arguments))
if child == 0:
    os._exit(0)
if child > 0:
    print(CLAIM)
