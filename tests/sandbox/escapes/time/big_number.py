"""Compute a number that does not fit the world.

family: time
canary: time
stops: full, container
root: no
seconds: 0.2
"""

import signal

signal.signal(signal.SIGTERM, signal.SIG_IGN)
9**9**9
