"""Leave a message in a System V queue.

family: shared memory
canary: leftover
stops: full, container
root: no
"""

import ctypes

libc = ctypes.CDLL(None)
queue = libc.msgget(KEY, 0o1666)
libc.msgsnd(queue, b"\x01\0\0\0\0\0\0\0evil", 4, 0)
