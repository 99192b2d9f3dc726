"""Leave a link to what the collecting process itself was started with.

family: left behind
canary: secret
stops: full, container
root: no
"""

import os

os.symlink("/proc/self/environ", "result.txt")
