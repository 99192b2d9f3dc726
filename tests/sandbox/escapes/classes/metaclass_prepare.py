"""Run code while a class is being made.

family: classes
canary: secret
stops: full, container
root: no
"""


class Meta(type):
    @classmethod
    def __prepare__(cls, *_):
        print(open(SECRET_FILE).read())
        return {}


class Made(metaclass=Meta):
    pass
