"""Stay inside one long call of C, where no handler of Python's runs.

family: time
canary: time
stops: full, container
root: no
seconds: 0.2
"""

import signal

signal.signal(signal.SIGTERM, lambda *_: None)
sum(range(10**12))
