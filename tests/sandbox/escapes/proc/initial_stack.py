"""Read the environment from the stack, where the kernel put it, although it was cleared since.

family: proc
canary: secret
stops: full, container
root: no
"""

import ctypes

place = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "program_invocation_name").value
for _ in range(500):
    text = ctypes.string_at(place)
    print(text, flush=True)
    place += len(text) + 1
    if text.startswith(SECRET_NAME.encode()):
        break
