"""Run code when an object goes away, outside any check of calls.

family: classes
canary: secret
stops: full, container
root: no
"""


class Last:
    def __del__(self):
        print(open(SECRET_FILE).read())


Last()
