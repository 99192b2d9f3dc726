"""Fork onto a terminal of its own.

family: processes
canary: claim
stops: full, container
root: no
"""

import os
import pty

child, _ = pty.fork()
if child == 0:
    os._exit(0)
print(CLAIM)
