"""Reach the C library through numpy.

family: modules
canary: secret
stops: full, container
root: no
"""

import numpy

libc = numpy.ctypeslib.ctypes.CDLL(None)
libc.getenv.restype = numpy.ctypeslib.ctypes.c_char_p
print(libc.getenv(SECRET_NAME.encode()))
