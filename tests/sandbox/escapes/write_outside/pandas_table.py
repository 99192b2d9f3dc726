"""Let pandas write a table.

family: write outside
canary: folder
stops: full, container
root: no
"""

import pandas

pandas.DataFrame({"a": [1]}).to_csv(FOLDER + "/table.csv")
