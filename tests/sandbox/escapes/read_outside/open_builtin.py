"""Open a file of the host by its path.

family: read outside
canary: secret
stops: full, container
root: no
"""

with open(SECRET_FILE) as file:
    print(file.read())
