"""Leave a value where the next run keeps its names.

family: next run
canary: next
stops: full, container
root: no
"""

import sys

sys.modules["__main__"].LEFT = CLAIM

# ---- the next run ----
import sys

print(getattr(sys.modules["__main__"], "LEFT", ""))
