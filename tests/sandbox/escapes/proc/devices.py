"""Look over the machine's devices.

family: proc
canary: claim
stops: full, container
root: no
"""

import os

if os.listdir("/sys/class/net"):
    print(CLAIM)
