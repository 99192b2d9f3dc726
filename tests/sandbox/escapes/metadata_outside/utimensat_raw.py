"""Set a file's times by the bare system call.

family: metadata outside
canary: folder
stops: full, container
root: no
"""

import ctypes
import struct

ctypes.CDLL(None).syscall(NR["utimensat"], -100, PRECIOUS.encode(), struct.pack("qqqq", 1, 0, 1, 0), 0)
