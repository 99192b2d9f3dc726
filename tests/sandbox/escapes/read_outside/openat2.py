"""Open the file with a newer system call than filters may know.

family: read outside
canary: secret
stops: full, container
root: no
"""

import ctypes
import os
import struct

libc = ctypes.CDLL(None)
descriptor = libc.syscall(NR["openat2"], -100, SECRET_FILE.encode(), struct.pack("QQQ", 0, 0, 0), 24)
print(os.read(descriptor, 1000))
