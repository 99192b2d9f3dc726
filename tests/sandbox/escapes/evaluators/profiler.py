"""Let the profiler run code.

family: evaluators
canary: secret
stops: full, container
root: no
"""

import cProfile

cProfile.run(f"print(open({SECRET_FILE!r}).read())")
