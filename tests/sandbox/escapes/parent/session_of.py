"""Learn the session of a process of the machine.

family: parent
canary: claim
stops: full, container
root: no
"""

import os

if os.getsid(VICTIM) > 0:
    print(CLAIM)
