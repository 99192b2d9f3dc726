"""Let numpy write the bytes.

family: write outside
canary: folder
stops: full, container
root: no
"""

import numpy

numpy.zeros(10).tofile(FOLDER + "/array.bin")
