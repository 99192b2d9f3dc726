"""Exchange the output for one that is never done.

family: time
canary: time
stops: full, container
root: no
seconds: 0.2
"""

import signal
import sys
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)


class Stuck:
    def __getattr__(self, name):
        time.sleep(30)


sys.stdout = sys.stderr = Stuck()
