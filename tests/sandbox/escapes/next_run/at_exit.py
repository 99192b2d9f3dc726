"""Have code run when the process that serves the next run ends.

family: next run
canary: next
stops: full, container
root: no
"""

import atexit

atexit.register(print, CLAIM)

# ---- the next run ----
print("harmless")
