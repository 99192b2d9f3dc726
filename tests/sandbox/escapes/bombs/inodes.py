"""Make ten thousand empty files.

family: bombs
canary: claim
stops: full
root: no
alone: yes
"""

import os

for number in range(10_000):
    os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY))
print(CLAIM)
