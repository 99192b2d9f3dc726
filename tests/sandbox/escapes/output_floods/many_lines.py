"""Print twenty million lines.

family: output floods
canary: flood
stops: full, container
root: no
"""

import sys

for _ in range(400):
    sys.stdout.write("x\n" * 50_000)
