"""Let the stop-watch run code.

family: evaluators
canary: secret
stops: full, container
root: no
"""

import timeit

timeit.timeit("print(open(path).read())", globals={"path": SECRET_FILE}, number=1)
