"""Give back an object that says it is a dictionary.

family: lies
canary: parent
stops: full, container
root: no
"""


class Value:
    __class__ = dict

    def __iter__(self):
        raise SystemExit(0)

    def items(self):
        raise KeyboardInterrupt

    def __repr__(self):
        raise SystemExit(0)


Value()
