"""Leave a handler of signals.

family: next run
canary: next
stops: full, container
root: no
"""

import signal

signal.signal(signal.SIGUSR2, lambda *_: print(CLAIM))

# ---- the next run ----
import os
import signal

if callable(signal.getsignal(signal.SIGUSR2)):
    os.kill(os.getpid(), signal.SIGUSR2)
