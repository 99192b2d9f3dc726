"""Tie a process of the machine to one processor.

family: parent
canary: victim, claim
stops: full, container
root: no
"""

import os

os.sched_setaffinity(VICTIM, {max(os.sched_getaffinity(0))})
print(CLAIM)  # there may be no more than that one
