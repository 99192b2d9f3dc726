"""Runs the cells of a notebook one after another, as Jupyter would, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

_RUN = """
import json, sys
names = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
"""


def run_cells(notebook: Path) -> str:
    """What the cells print. Fails the test where one of them raises."""
    command = [sys.executable, "-c", _RUN, notebook.name]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(command, cwd=notebook.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
