"""Leave a module in the temporary folder and a path to it.

family: next run
canary: next
stops: full, container
root: no
"""

import os
import sys
import tempfile

folder = os.path.join(tempfile.gettempdir(), NAME)
os.makedirs(folder, exist_ok=True)
open(os.path.join(folder, "planted.py"), "w").write(f"print({CLAIM!r})")
sys.path.insert(0, folder)

# ---- the next run ----
import planted
