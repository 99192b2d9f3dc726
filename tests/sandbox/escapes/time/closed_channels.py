"""Close every descriptor, so that the run looks ended, and go on.

family: time
canary: time
stops: full, container
root: no
seconds: 0.2
"""

import os
import signal
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.closerange(0, 1024)
time.sleep(30)
