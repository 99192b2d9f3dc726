"""Let the checker of examples run code.

family: evaluators
canary: secret
stops: full, container
root: no
"""

import doctest

doctest.run_docstring_examples(">>> print(open(path).read())", {"path": SECRET_FILE})
