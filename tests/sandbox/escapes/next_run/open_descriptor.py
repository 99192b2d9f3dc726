"""Leave an open descriptor.

family: next run
canary: next
stops: full, container
root: no
"""

import os

reader, writer = os.pipe()
os.write(writer, CLAIM.encode())
os.dup2(reader, 200)

# ---- the next run ----
import os

print(os.read(200, 100))
