"""Read the environment as Python holds it.

family: proc
canary: secret
stops: full, container
root: no
"""

import os

dict(os.environ)
