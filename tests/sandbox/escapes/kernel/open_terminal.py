"""Open a terminal of one's own, where typed text can be forged.

family: kernel
canary: claim
stops: full, container
root: no
"""

import os

os.openpty()
print(CLAIM)
