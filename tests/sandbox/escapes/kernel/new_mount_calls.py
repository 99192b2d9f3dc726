"""Mount with the newer calls.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import ctypes

if ctypes.CDLL(None).syscall(NR["fsopen"], b"tmpfs", 0) >= 0:
    print(CLAIM)
