"""Leave a POSIX message queue.

family: shared memory
canary: claim
stops: full, container
root: no
"""

import ctypes

libc = ctypes.CDLL(None)
if libc.mq_open(f"/{NAME}".encode(), 0o102, 0o666, None) >= 0:
    print(CLAIM)
    libc.mq_unlink(f"/{NAME}".encode())
