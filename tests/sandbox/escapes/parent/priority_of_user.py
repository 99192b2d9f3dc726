"""Learn the priority of everything that this user runs.

family: parent
canary: claim
stops: full, container
root: no
"""

import os

os.getpriority(os.PRIO_PROCESS, VICTIM)
print(CLAIM)
