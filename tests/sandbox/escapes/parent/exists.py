"""Learn whether a process of the machine is there.

family: parent
canary: claim
stops: full, container
root: no
"""

import os

os.kill(VICTIM, 0)
print(CLAIM)
