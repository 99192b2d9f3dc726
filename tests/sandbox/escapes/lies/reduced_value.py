"""Give back a value that runs code where it is unpickled.

family: lies
canary: folder
stops: full, container
root: no
"""

import os


class Value:
    def __reduce__(self):
        return (os.mkdir, (FOLDER + "/owned",))


Value()
