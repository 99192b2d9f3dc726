"""Read the file by a URL.

family: read outside
canary: secret
stops: full, container
root: no
"""

from urllib.request import urlopen

print(urlopen("file://" + SECRET_FILE).read())
