"""Leave a file where the next run's temporary files are.

family: next run
canary: next
stops: full, container
root: no
"""

import os
import tempfile

open(os.path.join(tempfile.gettempdir(), NAME), "w").write(CLAIM)

# ---- the next run ----
import os
import tempfile

print(open(os.path.join(tempfile.gettempdir(), NAME)).read())
