"""Write a forbidden name in letters that the parser folds into plain ones.

family: formats
canary: secret
stops: full, container
root: no
"""

print(ｏｐｅｎ(SECRET_FILE).read())
