"""Call by decorating: no call is written.

family: formats
canary: secret
stops: full, container
root: no
"""


@print
@list
@open
@lambda _: SECRET_FILE
def _():
    pass
