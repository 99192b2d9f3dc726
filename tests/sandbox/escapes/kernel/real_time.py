"""Run in a class that no other process interrupts.

family: kernel
canary: claim
stops: full, container
root: yes
"""

import os

os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
print(CLAIM)
