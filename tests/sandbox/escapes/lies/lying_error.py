"""Fail with an error that fails when it is looked at.

family: lies
canary: parent
stops: full, container
root: no
"""


class Lying(Exception):
    def __str__(self):
        raise SystemExit(0)

    __repr__ = __str__

    @property
    def __traceback__(self):
        raise KeyboardInterrupt


raise Lying
