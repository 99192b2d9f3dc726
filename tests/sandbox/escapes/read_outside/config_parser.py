"""Let a parser complain about the file, and quote it.

family: read outside
canary: secret
stops: full, container
root: no
"""

import configparser

configparser.ConfigParser().read(SECRET_FILE)
