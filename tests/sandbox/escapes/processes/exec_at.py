"""Become another program by the system call that takes a descriptor.

family: processes
canary: secret
stops: full, container
root: no
"""

import ctypes
import os

arguments = (ctypes.c_char_p * 3)(b"cat", SECRET_FILE.encode(), None)
ctypes.CDLL(None).syscall(NR["execveat"], os.open("/bin/cat", os.O_PATH), b"", arguments, None, 0x1000)
