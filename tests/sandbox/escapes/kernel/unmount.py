"""Take away what was mounted last over the working folder.

family: kernel
canary: claim
stops: full, container
root: no
"""

import ctypes
import os

libc = ctypes.CDLL(None)
libc.unshare(0x10000000 | 0x00020000)
os.mkdir("mnt")
libc.mount(b"none", b"mnt", b"tmpfs", 0, None)
if libc.umount2(b"mnt", 2) == 0:
    print(CLAIM)
