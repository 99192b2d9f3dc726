"""Fork by the calls of 32-bit programs, whose numbers differ.

family: kernel
canary: claim
stops: full, container
root: no
machine: x86_64
"""

import ctypes
import mmap
import os

# push rbx; mov eax, edi; int 0x80; pop rbx; ret
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("53 89f8 cd80 5b c3"))
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
child = call(2)
if child == 0:
    os._exit(0)
if child > 0:
    print(CLAIM)
