"""Let a table's query call a function.

family: evaluators
canary: secret
stops: full, container
root: no
related: CVE-2023-39631, CVE-2025-46724
"""

import pandas

frame = pandas.DataFrame({"a": [1]})
read = lambda: print(open(SECRET_FILE).read()) or [0]
try:
    frame.query("a in @read()")
except TypeError:
    pass
