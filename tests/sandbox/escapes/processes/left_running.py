"""Leave a process behind that has its own session and no parent.

family: processes
canary: running
stops: full, container
root: no
alone: yes
"""

import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(10):
            try:
                os.close(descriptor)
            except OSError:
                pass
        time.sleep(3)
    os._exit(0)
os.wait()
