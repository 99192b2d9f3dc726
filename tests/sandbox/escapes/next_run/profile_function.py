"""Watch every call of the next run.

family: next run
canary: next
stops: full, container
root: no
"""

import sys

sys.setprofile(lambda frame, event, argument: sys.stdout.write(CLAIM) if event == "call" else None)

# ---- the next run ----
(lambda: None)()
