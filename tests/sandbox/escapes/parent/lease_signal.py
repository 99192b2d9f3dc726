"""Let the kernel send the signal when a lease on an own file breaks.

family: parent
canary: victim
stops: full, container
root: no
"""

import fcntl
import os
import signal

own = os.open("mine", os.O_RDONLY | os.O_CREAT)
fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGTERM)
fcntl.fcntl(own, fcntl.F_SETLEASE, fcntl.F_RDLCK)
fcntl.fcntl(own, fcntl.F_SETOWN, VICTIM)
os.open("mine", os.O_WRONLY | os.O_NONBLOCK)
