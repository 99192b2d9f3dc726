"""Hide such a value inside an array of objects.

family: lies
canary: folder
stops: full, container
root: no
"""

import os

import numpy


class Value:
    def __reduce__(self):
        return (os.mkdir, (FOLDER + "/owned",))


numpy.array([Value()], dtype=object)
