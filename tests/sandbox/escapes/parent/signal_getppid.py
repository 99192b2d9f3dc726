"""Signal the process that the kernel names as the parent.

family: parent
canary: parent_signal
stops: full, container
root: no
alone: yes
"""

import os
import signal

signal.signal(signal.SIGUSR1, signal.SIG_IGN)
os.kill(os.getppid(), signal.SIGUSR1)
