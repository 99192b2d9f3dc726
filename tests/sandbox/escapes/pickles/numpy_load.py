"""Let numpy unpickle a file.

family: pickles
canary: secret
stops: full, container
root: no
"""

import numpy


class Reader:
    def __reduce__(self):
        return (eval, (f"print(open({SECRET_FILE!r}).read())",))


numpy.save("array.npy", numpy.array([Reader()], dtype=object))
numpy.load("array.npy", allow_pickle=True)
