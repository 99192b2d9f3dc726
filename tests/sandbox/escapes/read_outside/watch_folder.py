"""Watch what happens in a folder of the host.

family: read outside
canary: claim
stops: full
root: no
"""

import ctypes

libc = ctypes.CDLL(None)
if libc.inotify_add_watch(libc.inotify_init1(0), FOLDER.encode(), 0x100) >= 0:
    print(CLAIM)
