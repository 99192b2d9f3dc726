"""Give back a number of more digits than Python will print.

family: lies
canary: parent
stops: full, container
root: no
"""

10**20_000
