"""Make a process of the machine slow.

family: parent
canary: victim, claim
stops: full, container
root: no
"""

import os

os.setpriority(os.PRIO_PROCESS, VICTIM, 19)
print(CLAIM)  # it may be as slow as that already
