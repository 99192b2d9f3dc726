"""Put a process of the machine into the lowest class.

family: parent
canary: victim
stops: full, container
root: no
"""

import os

os.sched_setscheduler(VICTIM, os.SCHED_IDLE, os.sched_param(0))
