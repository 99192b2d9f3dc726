"""Change how the next run's tables look.

family: next run
canary: next
stops: full, container
root: no
"""

import pandas

pandas.DataFrame.__repr__ = lambda *_: CLAIM

# ---- the next run ----
import pandas

print(repr(pandas.DataFrame({"a": [1]})))
