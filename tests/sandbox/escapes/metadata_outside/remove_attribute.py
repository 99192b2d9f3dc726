"""Take an extended attribute from a file of the host.

family: metadata outside
canary: folder
stops: full, container
root: no
"""

import os

os.removexattr(PRECIOUS, "user.note")
