"""Write into the memory of a process of the machine.

family: parent
canary: victim
stops: full, container
root: no
"""

import ctypes

libc = ctypes.CDLL(None)
buffer = ctypes.create_string_buffer(b"overwritten")
own = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 11)
other = (ctypes.c_size_t * 2)(VICTIM_ADDRESS, 11)
libc.syscall(NR["process_vm_writev"], VICTIM, own, 1, other, 1, 0)
