"""Tell the kernel what to do with the memory of a process of the machine.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import ctypes
import os
import struct

MADV_COLD = 20
pages = struct.pack("QQ", VICTIM_ADDRESS & ~4095, 4096)
if ctypes.CDLL(None).syscall(NR["process_madvise"], os.pidfd_open(VICTIM), pages, 1, MADV_COLD, 0) >= 0:
    print(CLAIM)
