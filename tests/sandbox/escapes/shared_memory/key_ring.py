"""Leave a key in the ring that all of a user's processes share.

family: shared memory
canary: claim
stops: full, container
root: no
"""

import ctypes

libc = ctypes.CDLL(None)
USER_RING, UNLINK = -4, 9
key = libc.syscall(NR["add_key"], b"user", NAME.encode(), b"evil", 4, USER_RING)
if key > 0:
    print(CLAIM)
    libc.syscall(NR["keyctl"], UNLINK, key, USER_RING)
