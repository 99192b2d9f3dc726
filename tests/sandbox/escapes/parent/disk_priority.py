"""Let a process of the machine wait for the disk behind all others.

family: parent
canary: victim
stops: full, container
root: no
"""

import ctypes

IDLE, LAST_OF_BEST_EFFORT = 3 << 13, 2 << 13 | 7
libc = ctypes.CDLL(None)
is_idle = libc.syscall(NR["ioprio_get"], 1, VICTIM) == IDLE
libc.syscall(NR["ioprio_set"], 1, VICTIM, LAST_OF_BEST_EFFORT if is_idle else IDLE)
