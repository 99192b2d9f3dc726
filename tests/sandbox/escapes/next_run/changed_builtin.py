"""Change a builtin function for whoever calls it next.

family: next run
canary: next
stops: full, container
root: no
"""

import builtins

builtins.sum = lambda *_: CLAIM

# ---- the next run ----
print(sum([1]))
