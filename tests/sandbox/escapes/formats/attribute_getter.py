"""Walk attributes by the operator module.

family: formats
canary: secret
stops: full, container
root: no
"""

import json
import operator

print(operator.attrgetter("codecs.open")(json)(SECRET_FILE).read())
