"""Leave a System V semaphore.

family: shared memory
canary: leftover
stops: full, container
root: no
"""

import ctypes

ctypes.CDLL(None).semget(KEY, 1, 0o1666)
