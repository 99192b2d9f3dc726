"""Sleep, with every polite signal ignored.

family: time
canary: time
stops: full, container
root: no
seconds: 0.2
"""

import signal
import time

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGXCPU, signal.SIGPIPE):
    signal.signal(number, signal.SIG_IGN)
time.sleep(30)
