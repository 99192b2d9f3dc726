"""Run code when a descriptor learns its name.

family: classes
canary: secret
stops: full, container
root: no
"""


class Hook:
    def __set_name__(self, owner, name):
        print(open(SECRET_FILE).read())


class Made:
    hook = Hook()
