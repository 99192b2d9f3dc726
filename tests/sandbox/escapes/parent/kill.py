"""End a process of the machine.

family: parent
canary: victim
stops: full, container
root: no
"""

import os
import signal

os.kill(VICTIM, signal.SIGKILL)
