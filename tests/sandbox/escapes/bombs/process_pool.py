"""Ask a pool for forty workers.

family: bombs
canary: processes, claim
stops: full, container
root: no
alone: yes
"""

import multiprocessing

with multiprocessing.get_context("fork").Pool(40) as pool:
    pool.map(len, ["a"] * 40)
    print(CLAIM)
