"""Read a file of the host through pathlib.

family: read outside
canary: secret
stops: full, container
root: no
"""

from pathlib import Path

Path(SECRET_FILE).read_text()
