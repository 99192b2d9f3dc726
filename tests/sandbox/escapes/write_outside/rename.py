"""Move a file of the host elsewhere.

family: write outside
canary: folder
stops: full, container
root: no
"""

import os

os.rename(PRECIOUS, FOLDER + "/stolen")
