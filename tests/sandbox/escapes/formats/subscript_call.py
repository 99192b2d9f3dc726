"""Call by subscription: no call of the function is written.

family: formats
canary: secret
stops: full, container
root: no
"""


class Caller:
    __class_getitem__ = open


print(*Caller[SECRET_FILE])
