"""Change a file's flags by the ioctl that all file systems share, through a descriptor that only reads.

family: metadata outside
canary: folder
stops: full, container
root: no
"""

import fcntl
import os
import struct

FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR, NO_DUMP = 0x801C581F, 0x401C5820, 0x80
precious = os.open(PRECIOUS, os.O_RDONLY)
flags, *rest = struct.unpack("=5I8s", fcntl.ioctl(precious, FS_IOC_FSGETXATTR, bytes(28)))
fcntl.ioctl(precious, FS_IOC_FSSETXATTR, struct.pack("=5I8s", flags | NO_DUMP, *rest))
