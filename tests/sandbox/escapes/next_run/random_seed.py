"""Know the random numbers of the next run.

family: next run
canary: next
stops: full, container
root: no
"""

import random

random.seed(7)

# ---- the next run ----
import random

if random.random() == random.Random(7).random():
    print(CLAIM)
