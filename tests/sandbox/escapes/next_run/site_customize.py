"""Leave modules that Python runs by itself as it starts, where the next run starts.

family: next run
canary: next
stops: full, container
root: no
"""

import os

for name in ("sitecustomize.py", "usercustomize.py", "planted.pth"):
    open(name, "w").write(f"import sys; print({CLAIM!r})\n")

# ---- the next run ----
import os
import site
import sys

sys.path.insert(0, os.getcwd())
sys.modules.pop("sitecustomize", None)
site.addsitedir(os.getcwd())
import sitecustomize
