"""Let numpy read the bytes.

family: read outside
canary: secret
stops: full, container
root: no
"""

import numpy

print(numpy.fromfile(SECRET_FILE, dtype="uint8").tobytes())
