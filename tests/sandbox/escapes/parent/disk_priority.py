"""Let a process of the machine wait for the disk behind all others.

family: parent
canary: victim
stops: full, container
root: no
"""

import ctypes

ctypes.CDLL(None).syscall(NR["ioprio_set"], 1, VICTIM, 3 << 13)
