"""Change the mode through a descriptor.

family: metadata outside
canary: folder
stops: full, container
root: no
"""

import os

os.fchmod(os.open(PRECIOUS, os.O_RDONLY), 0o777)
