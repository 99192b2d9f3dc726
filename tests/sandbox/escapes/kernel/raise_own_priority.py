"""Run before everything else on the machine.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import os

before = os.getpriority(os.PRIO_PROCESS, 0)
os.nice(-5)
if os.getpriority(os.PRIO_PROCESS, 0) < before:
    print(CLAIM)
