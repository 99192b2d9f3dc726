"""Set up a ring through which system calls pass no filter.

family: kernel
canary: claim
stops: full, container
root: no
"""

import ctypes

parameters = ctypes.create_string_buffer(120)
if ctypes.CDLL(None).syscall(NR["io_uring_setup"], 4, parameters) >= 0:
    print(CLAIM)
