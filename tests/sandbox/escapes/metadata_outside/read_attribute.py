"""Read an extended attribute of a file of the host.

family: metadata outside
canary: secret
stops: full
root: no
"""

import os

os.getxattr(SECRET_FILE, "user.secret")
