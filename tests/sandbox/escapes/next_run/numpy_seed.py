"""Know numpy's random numbers of the next run.

family: next run
canary: next
stops: full, container
root: no
"""

import numpy

numpy.random.seed(7)

# ---- the next run ----
import numpy

if numpy.random.random() == numpy.random.RandomState(7).random():
    print(CLAIM)
