"""Give back a value that is nested deeper than an encoder's stack.

family: lies
canary: parent
stops: full, container
root: no
"""

value = []
for _ in range(100_000):
    value = [value]
value
