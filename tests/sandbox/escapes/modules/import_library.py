"""Import by the library for importing.

family: modules
canary: secret
stops: full, container
root: no
"""

import importlib

importlib.import_module("o" + "s").write(1, open(SECRET_FILE, "rb").read())
