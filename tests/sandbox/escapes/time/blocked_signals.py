"""Work for ever, with every signal blocked.

family: time
canary: time
stops: full, container
root: no
seconds: 0.2
"""

import signal

signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True:
    pass
