"""Let the kernel send the signal: own a descriptor in somebody else's name.

family: parent
canary: victim
stops: full, container
root: no
"""

import fcntl
import os
import signal
import socket

one, other = socket.socketpair()
fcntl.fcntl(one, fcntl.F_SETOWN, VICTIM)
fcntl.fcntl(one, fcntl.F_SETSIG, signal.SIGTERM)
fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
other.send(b"x")
