"""Delete a file of the host.

family: write outside
canary: folder
stops: full, container
root: no
"""

import os

os.unlink(PRECIOUS)
