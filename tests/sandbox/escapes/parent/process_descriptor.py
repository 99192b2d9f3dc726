"""Send a signal through a descriptor of a process.

family: parent
canary: victim
stops: full, container
root: no
"""

import os
import signal

signal.pidfd_send_signal(os.pidfd_open(VICTIM), signal.SIGTERM)
