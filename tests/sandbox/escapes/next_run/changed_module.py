"""Change a module for whoever imports it next.

family: next run
canary: next
stops: full, container
root: no
"""

import json

json.dumps = lambda *_: CLAIM

# ---- the next run ----
import json

print(json.dumps(1))
