"""Hide the call inside a format inside a string.

family: formats
canary: secret
stops: full, container
root: no
"""

print(f"{f'{open(SECRET_FILE).read()}'}")
