"""Let pandas read the file as a table.

family: read outside
canary: secret
stops: full, container
root: no
"""

import pandas

pandas.read_csv(SECRET_FILE, header=None)
