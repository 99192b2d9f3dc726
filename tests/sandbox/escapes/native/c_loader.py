"""Load the C library by the module under ctypes.

family: native
canary: secret
stops: full, container
root: no
"""

import _ctypes
import ctypes

handle = _ctypes.dlopen(None, 2)
getenv = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_char_p)(_ctypes.dlsym(handle, "getenv"))
print(getenv(SECRET_NAME.encode()))
