"""Leave a block of System V shared memory.

family: shared memory
canary: leftover
stops: full, container
root: no
"""

import ctypes

ctypes.CDLL(None).shmget(KEY, 4096, 0o1666)
