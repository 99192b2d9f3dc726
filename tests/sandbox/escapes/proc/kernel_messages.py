"""Read the kernel's log.

family: proc
canary: claim
stops: full, container
root: yes
"""

import ctypes

buffer = ctypes.create_string_buffer(4096)
if ctypes.CDLL(None).klogctl(3, buffer, 4096) > 0:
    print(CLAIM)
