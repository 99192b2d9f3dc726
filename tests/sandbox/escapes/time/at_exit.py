"""Be done, and never leave.

family: time
canary: time
stops: full, container
root: no
seconds: 0.2
"""

import atexit
import signal
import threading
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
atexit.register(time.sleep, 30)
threading.Thread(target=time.sleep, args=(30,)).start()
