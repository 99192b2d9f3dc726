"""Start sixty programs without a call of fork.

family: bombs
canary: processes, claim
stops: full, container
root: no
alone: yes
"""

import os
import time

for _ in range(60):
    os.posix_spawn("/bin/sleep", ["sleep", "0.4"], {})
print(CLAIM)
time.sleep(0.3)
