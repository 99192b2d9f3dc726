"""Carry the code as text in base 64.

family: formats
canary: secret
stops: full, container
root: no
"""

import base64

exec(base64.b64decode("cHJpbnQob3BlbihTRUNSRVRfRklMRSkucmVhZCgpKQ=="))
