"""Give back numbers and texts that are none.

family: lies
canary: parent
stops: full, container
root: no
"""


class Number(int):
    def __int__(self):
        raise SystemExit

    __repr__ = __index__ = __str__ = __float__ = __int__


class Text(str):
    def encode(self, *_):
        raise SystemExit

    __str__ = __repr__ = encode


[Number(3), Text("x"), {Text("key"): Number(4)}]
