"""Put a process of the machine into another class, by the newer call.

family: parent
canary: victim
stops: full, container
root: no
"""

import ctypes
import struct

SCHED_BATCH = 3
attributes = struct.pack("IIQiIQQQ", 48, SCHED_BATCH, 0, 19, 0, 0, 0, 0)
ctypes.CDLL(None).syscall(NR["sched_setattr"], VICTIM, attributes, 0)
