"""Leave every new file open to everybody.

family: next run
canary: next
stops: full, container
root: no
"""

import os

os.umask(0)
open("first", "w").close()

# ---- the next run ----
import os

if os.umask(0) == 0:
    print(CLAIM)
