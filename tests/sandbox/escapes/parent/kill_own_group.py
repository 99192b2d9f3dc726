"""End whatever is in this process's own group.

family: parent
canary: victim
stops: full, container
root: no
"""

import os
import signal

signal.signal(signal.SIGUSR1, signal.SIG_IGN)
os.kill(0, signal.SIGUSR1)
