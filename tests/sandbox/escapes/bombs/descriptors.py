"""Open two thousand descriptors, after raising what may be open.

family: bombs
canary: claim
stops: full, container
root: no
alone: yes
"""

import os
import resource

resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
for _ in range(2000):
    os.dup(0)
print(CLAIM)
