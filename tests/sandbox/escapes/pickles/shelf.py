"""Let a shelf unpickle what was put there.

family: pickles
canary: secret
stops: full, container
root: no
"""

import shelve


class Reader:
    def __reduce__(self):
        return (eval, (f"print(__import__('io').open({SECRET_FILE!r}).read())",))


shelf = shelve.Shelf({})
shelf["a"] = Reader()
shelf["a"]
