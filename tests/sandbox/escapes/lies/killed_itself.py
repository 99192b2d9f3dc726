"""End by a signal, as if somebody else had.

family: lies
canary: parent
stops: full, container
root: no
"""

import os
import signal

os.kill(os.getpid(), signal.SIGKILL)
