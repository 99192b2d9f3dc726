"""Stop, so that nothing polite arrives.

family: time
canary: time
stops: full, container
root: no
seconds: 0.2
"""

import os
import signal

signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGSTOP)
while True:
    pass
