"""Give back a value that contains itself, in a form that no repr ends.

family: lies
canary: parent
stops: full, container
root: no
"""

value = {}
value["self"] = lambda: value
value["again"] = [value, value]
value
