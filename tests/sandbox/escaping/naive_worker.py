"""The plain subprocess: runs texts one after the other in one interpreter and pickles the last one's value.

    python naive_worker.py RESULT_DESCRIPTOR FILE [FILE]

It contains nothing: it is what the payloads are shown to escape from.
"""

import ast
import os
import pickle
import resource
import sys
from pathlib import Path

BEGUN = "begun"
SEPARATOR = "\n==== the next run ====\n"


def value_of(text: str) -> object:
    """Run a text as a notebook does."""
    tree = ast.parse(text)
    names: dict[str, object] = {"__name__": "__main__"}
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "payload", "exec"), names)
    return eval(compile(ast.Expression(last.value), "payload", "eval"), names) if last else None


def main() -> None:
    """Run all, answer for the last."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    Path(BEGUN).touch()
    value = None
    for number, path in enumerate(sys.argv[2:]):
        if number:
            print(SEPARATOR, flush=True)
        value = value_of(Path(path).read_text(encoding="utf-8"))
    answer = memoryview(pickle.dumps(value))
    while answer:
        answer = answer[os.write(int(sys.argv[1]), answer) :]


if __name__ == "__main__":
    main()
