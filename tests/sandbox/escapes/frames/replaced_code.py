"""Exchange a harmless function's code for another's.

family: frames
canary: secret
stops: full, container
root: no
"""


def harmless():
    return 1


def hostile():
    return open(SECRET_FILE).read()


harmless.__code__ = hostile.__code__.replace(co_name="harmless")
print(harmless())
