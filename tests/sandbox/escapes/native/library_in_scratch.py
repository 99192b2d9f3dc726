"""Put a library into the working folder and load it.

family: native
canary: claim
stops: full
root: no
"""

import _ctypes
import ctypes
import shutil

shutil.copy(_ctypes.__file__, "library.so")
ctypes.CDLL("./library.so")
print(CLAIM)
