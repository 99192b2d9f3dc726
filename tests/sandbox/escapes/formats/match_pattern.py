"""Read an attribute by a class pattern, which has no dot.

family: formats
canary: secret
stops: full, container
root: no
"""

import json

match json:
    case object(codecs=object(open=reader)):
        print(reader(SECRET_FILE).read())
