"""Match an expression that takes longer than the universe.

family: time
canary: time
stops: full, container
root: no
seconds: 0.2
"""

import re
import signal

signal.signal(signal.SIGTERM, lambda *_: None)
re.match("(a+)+$", "a" * 60 + "b")
