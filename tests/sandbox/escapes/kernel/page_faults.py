"""Handle the kernel's page faults, which widens every race.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import ctypes

if ctypes.CDLL(None).syscall(NR["userfaultfd"], 0) >= 0:
    print(CLAIM)
