"""Cut a file of the host by its path, without opening it.

family: write outside
canary: folder
stops: full, container
root: no
"""

import os

os.truncate(PRECIOUS, 0)
