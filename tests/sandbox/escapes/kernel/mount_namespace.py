"""Take a view of the mounts of one's own, to change it.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import ctypes

if ctypes.CDLL(None).unshare(0x00020000) == 0:
    print(CLAIM)
