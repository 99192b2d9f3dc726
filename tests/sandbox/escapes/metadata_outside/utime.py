"""Set a file's times back.

family: metadata outside
canary: folder
stops: full, container
root: no
"""

import os

os.utime(PRECIOUS, (1, 1))
