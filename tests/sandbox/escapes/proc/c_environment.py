"""Read the environment as the C library holds it.

family: proc
canary: secret
stops: full, container
root: no
"""

import ctypes

libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
print(libc.getenv(SECRET_NAME.encode()))
