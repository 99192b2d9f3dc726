"""Give a file of the host to somebody else.

family: metadata outside
canary: folder
stops: full, container
root: yes
"""

import os

os.chown(PRECIOUS, 1, 1)
