"""Leave a link to a device that never ends.

family: left behind
canary: parent
stops: full, container
root: no
"""

import os

os.symlink("/dev/zero", "result.txt")
