"""Open the file through the C library, past every hook of Python.

family: read outside
canary: secret
stops: full, container
root: no
"""

import ctypes

libc = ctypes.CDLL(None)
buffer = ctypes.create_string_buffer(1000)
libc.read(libc.open(SECRET_FILE.encode(), 0), buffer, 1000)
print(buffer.value)
