"""Open again, through /proc, what was left open.

family: descriptors
canary: secret
stops: full, container
root: no
"""

import os

for number in os.listdir("/proc/self/fd"):
    if int(number) > 2:
        try:
            print(open(f"/proc/self/fd/{number}", "rb", buffering=0).read(1000))
        except OSError:
            pass
