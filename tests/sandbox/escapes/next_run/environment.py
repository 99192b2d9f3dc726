"""Leave a variable in the environment.

family: next run
canary: next
stops: full, container
root: no
"""

import os

os.environ["LEFT"] = CLAIM

# ---- the next run ----
import os

print(os.environ.get("LEFT"))
