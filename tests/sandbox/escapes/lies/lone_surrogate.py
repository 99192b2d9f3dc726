"""Give back text that no encoding takes.

family: lies
canary: parent
stops: full, container
root: no
"""

"\ud800" * 10
