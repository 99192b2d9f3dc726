"""Change a file's flags by an ioctl, as chattr does.

family: metadata outside
canary: folder
stops: full, container
root: no
"""

import fcntl
import os
import struct

FS_IOC_SETFLAGS, NO_DUMP = 0x40086602, 0x40
fcntl.ioctl(os.open(PRECIOUS, os.O_RDONLY), FS_IOC_SETFLAGS, struct.pack("L", NO_DUMP))
