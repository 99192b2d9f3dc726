"""Take 400 megabytes from the C library.

family: bombs
canary: memory, claim
stops: full, container
root: no
alone: yes
"""

import ctypes

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
for _ in range(40):
    ctypes.memset(libc.malloc(10_000_000), 1, 10_000_000)
print(CLAIM)
