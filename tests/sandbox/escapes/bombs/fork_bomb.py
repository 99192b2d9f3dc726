"""Fork until there are sixty processes.

family: bombs
canary: processes, claim
stops: full, container
root: no
alone: yes
"""

import os
import time

children = 0
while children < 60:
    if os.fork() == 0:
        time.sleep(0.4)
        os._exit(0)
    children += 1
print(CLAIM)
time.sleep(0.3)
