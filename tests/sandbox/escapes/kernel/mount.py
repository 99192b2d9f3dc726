"""Mount over a folder.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import ctypes
import os

libc = ctypes.CDLL(None)
os.mkdir("mnt")
place = os.path.abspath("mnt").encode()
if libc.mount(b"none", place, b"tmpfs", 0, None) == 0:
    print(CLAIM)
    libc.umount2(place, 2)
