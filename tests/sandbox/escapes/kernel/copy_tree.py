"""Take a copy of the tree of mounts as a descriptor.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import ctypes

if ctypes.CDLL(None).syscall(NR["open_tree"], -100, b"/", 1) >= 0:
    print(CLAIM)
