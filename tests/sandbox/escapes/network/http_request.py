"""Carry data out in the path of a web request.

family: network
canary: network
stops: full, container
root: no
"""

from urllib.request import urlopen

try:
    urlopen(f"http://127.0.0.1:{TCP_PORT}/{CLAIM}", timeout=0.2)
except OSError:
    pass
