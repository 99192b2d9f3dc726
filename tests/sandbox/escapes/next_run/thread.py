"""Leave a thread that works during the next run.

family: next run
canary: next
stops: full, container
root: no
"""

import threading
import time


def work():
    for _ in range(30):
        time.sleep(0.01)
        print(CLAIM, flush=True)


threading.Thread(target=work, daemon=True).start()

# ---- the next run ----
import time

time.sleep(0.2)
