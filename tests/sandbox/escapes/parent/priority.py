"""Make a process of the machine slow.

family: parent
canary: victim
stops: full, container
root: no
"""

import os

os.setpriority(os.PRIO_PROCESS, VICTIM, 19)
