"""Switch off the random placing of memory for what is started next.

family: kernel
canary: claim
stops: full, container
root: no
"""

import ctypes

if ctypes.CDLL(None).personality(0x0040000) >= 0:
    print(CLAIM)
