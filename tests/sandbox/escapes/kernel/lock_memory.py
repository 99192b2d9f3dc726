"""Keep sixty-four megabytes in memory that the kernel can't take back.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import ctypes
import mmap

block = mmap.mmap(-1, 64 << 20)
place = (ctypes.c_char * len(block)).from_buffer(block)
libc = ctypes.CDLL(None)
libc.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
if libc.mlock(ctypes.addressof(place), len(block)) == 0:
    print(CLAIM)
