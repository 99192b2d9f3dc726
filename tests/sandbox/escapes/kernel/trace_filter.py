"""Install a filter of one's own that hands system calls to a helper.

family: kernel
canary: claim
stops: full, container
root: no
"""

import ctypes
import struct

libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
program = struct.pack("HxxxxxxP", 1, ctypes.addressof(allow))
if libc.syscall(NR["seccomp"], 1, 8, program) >= 0:
    print(CLAIM)
