"""Ask whether a file of the host exists, and how long it is.

family: read outside
canary: claim
stops: full
root: no
"""

import os

if os.stat(SECRET_FILE).st_size > 0:
    print(CLAIM)
