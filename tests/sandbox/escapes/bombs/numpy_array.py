"""Take 400 megabytes as an array.

family: bombs
canary: memory, claim
stops: full, container
root: no
alone: yes
"""

import numpy

array = numpy.ones(50_000_000)
print(CLAIM)
