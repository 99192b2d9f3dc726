"""Start fifteen hundred threads.

family: bombs
canary: threads, claim
stops: full, container
root: no
alone: yes
"""

import threading
import time

over = threading.Event()
threading.stack_size(65536)
for _ in range(1500):
    threading.Thread(target=over.wait, args=(3,), daemon=True).start()
print(CLAIM)
time.sleep(0.2)
over.set()
