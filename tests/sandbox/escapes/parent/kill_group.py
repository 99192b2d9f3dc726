"""End a group of processes of the machine.

family: parent
canary: victim
stops: full, container
root: no
"""

import os
import signal

os.killpg(VICTIM, signal.SIGTERM)
