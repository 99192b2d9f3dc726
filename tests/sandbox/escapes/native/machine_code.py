"""Make system calls from machine code written into memory.

family: native
canary: secret
stops: full, container
root: no
"""

import ctypes
import mmap
import platform

CODE = {
    "x86_64": "4889f8 4889f7 4889d6 4889ca 4d89c2 0f05 c3",
    "aarch64": "e80300aa e00301aa e10302aa e20303aa e30304aa 010000d4 c0035fd6",
}
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex(CODE[platform.machine()]))
kind = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)
call = kind(ctypes.addressof(ctypes.c_char.from_buffer(page)))
path = ctypes.create_string_buffer(SECRET_FILE.encode())
buffer = ctypes.create_string_buffer(1000)
descriptor = call(NR["openat"], -100, ctypes.addressof(path), 0, 0)
call(NR["read"], descriptor, ctypes.addressof(buffer), 1000, 0)
print(buffer.value)
