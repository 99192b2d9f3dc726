"""Load something into the kernel's own machine.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import ctypes
import struct

attributes = struct.pack("IIIII", 2, 4, 8, 1, 0) + bytes(100)
if ctypes.CDLL(None).syscall(NR["bpf"], 0, attributes, len(attributes)) >= 0:
    print(CLAIM)
