"""Signal whoever started this process.

family: parent
canary: parent_signal
stops: full, container
root: no
alone: yes
"""

import os
import signal

os.kill(PARENT, signal.SIGUSR1)
