"""Import the file as source, so that the error shows its line.

family: read outside
canary: secret
stops: full, container
root: no
"""

import runpy

runpy.run_path(SECRET_FILE)
