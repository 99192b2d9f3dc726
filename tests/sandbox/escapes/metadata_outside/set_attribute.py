"""Write an extended attribute of a file of the host.

family: metadata outside
canary: folder
stops: full, container
root: no
"""

import os

os.setxattr(PRECIOUS, "user.note", b"changed")
