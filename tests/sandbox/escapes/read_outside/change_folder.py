"""Stand in a folder of the host.

family: read outside
canary: claim
stops: full
root: no
"""

import os

os.chdir(FOLDER)
if os.path.exists("precious.txt"):
    print(CLAIM)
