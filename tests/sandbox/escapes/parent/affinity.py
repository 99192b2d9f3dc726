"""Tie a process of the machine to one processor.

family: parent
canary: victim
stops: full, container
root: no
"""

import os

os.sched_setaffinity(VICTIM, {max(os.sched_getaffinity(0))})
