"""Let an import loader read the file.

family: read outside
canary: secret
stops: full, container
root: no
"""

from importlib.machinery import SourceFileLoader

SourceFileLoader("x", SECRET_FILE).get_data(SECRET_FILE)
