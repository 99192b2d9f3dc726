"""Open a file of the host to everybody.

family: metadata outside
canary: folder
stops: full, container
root: no
"""

import os

os.chmod(PRECIOUS, 0o777)
