"""Find the function among everything that the collector knows.

family: frames
canary: secret
stops: full, container
root: no
"""

import gc
import io

namespaces = (each for each in gc.get_objects() if type(each) is dict and each.get("open") is io.open)
print(next(namespaces)["open"](SECRET_FILE).read())
