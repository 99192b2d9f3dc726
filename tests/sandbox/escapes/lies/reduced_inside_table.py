"""Hide such a value inside a table.

family: lies
canary: folder
stops: full, container
root: no
"""

import os

import pandas


class Value:
    def __reduce__(self):
        return (os.mkdir, (FOLDER + "/owned",))


pandas.DataFrame({"a": [1, Value()]})
