"""Send a signal by a call that filters forget.

family: parent
canary: victim
stops: full, container
root: no
"""

import ctypes
import struct

information = struct.pack("iii4xiI", 10, 0, -1, 0, 0) + bytes(104)
ctypes.CDLL(None).syscall(NR["rt_sigqueueinfo"], VICTIM, 10, information)
