"""Read the memory of a process of the machine.

family: parent
canary: secret
stops: full, container
root: no
"""

import ctypes
import re

libc = ctypes.CDLL(None)
for line in open(f"/proc/{VICTIM}/maps"):
    if "[stack]" in line:
        first, last = (int(number, 16) for number in re.match(r"(\w+)-(\w+)", line).groups())
        buffer = ctypes.create_string_buffer(last - first)
        own = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), last - first)
        other = (ctypes.c_size_t * 2)(first, last - first)
        libc.syscall(NR["process_vm_readv"], VICTIM, own, 1, other, 1, 0)
        print(buffer.raw)
