"""Give back a value that takes for ever to describe itself.

family: time
canary: time
stops: full, container
root: no
seconds: 0.2
"""

import signal
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)


class Slow:
    def __repr__(self):
        time.sleep(30)
        return "slow"

    def __reduce__(self):
        time.sleep(30)
        return (int, ())


Slow()
