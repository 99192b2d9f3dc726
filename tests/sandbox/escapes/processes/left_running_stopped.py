"""Leave a stopped process behind, which no polite signal ends.

family: processes
canary: running
stops: full, container
root: no
alone: yes
"""

import os
import signal

child = os.fork()
if child == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
