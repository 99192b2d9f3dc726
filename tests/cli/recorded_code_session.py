"""The session of `ferrule code` that README.md shows: played on a real terminal, with a model that plays a script.

python tests/cli/recorded_code_session.py     # writes it into README.md anew
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
README, DOCUMENT = ROOT / "README.md", ROOT / "docs" / "coding.md"
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "servers")]

# ruff: noqa: E402 - they are found by the line above
from openai_server import KEY, calls, says, server
from screens import CTRL_D, ENTER, Screen
from server_thread import serve_in_thread

QUESTION = "add error handling to the fetch function in api.py"
API = """import urllib.request


def fetch(url):
    return urllib.request.urlopen(url).read()
"""
OLD = "    return urllib.request.urlopen(url).read()\n"
NEW = """    try:
        return urllib.request.urlopen(url, timeout=10).read()
    except OSError as error:
        raise RuntimeError(f"{url} can't be fetched: {error}") from error
"""
TEST = """import unittest

import api


class FetchTest(unittest.TestCase):
    def test_a_missing_file(self):
        with self.assertRaisesRegex(RuntimeError, "can't be fetched"):
            api.fetch("file:///missing")
"""
CHECK = "python3 -B -m unittest 2>&1 | tail -1"
SCRIPT = (
    calls(("call_1", "read_file", json.dumps({"path": "api.py"}))),
    calls(("call_2", "edit_file", json.dumps({"path": "api.py", "edits": [{"old": OLD, "new": NEW}]}))),
    calls(("call_3", "bash", json.dumps({"command": CHECK}))),
    says("`fetch` now gives up after 10 seconds, and says which address can't be fetched and why (api.py:5)."),
)
BLOCK = re.compile(r"(<!-- recorded by tests/cli/recorded_code_session.py -->\n```text\n).*?(```\n)", re.DOTALL)


def record() -> str:
    """Play the session; returns what the terminal shows of it."""
    # A path of the same length everywhere, so that lines are wrapped at the same places.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        project, home = Path(folder, "project"), str(Path(folder, "home"))
        project.mkdir()
        (project / "api.py").write_text(API)
        (project / "test_api.py").write_text(TEST)
        kept = {"XDG_DATA_HOME": home, "XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home, "OPENAI_API_KEY": KEY}
        with (
            serve_in_thread(lambda: server(*SCRIPT)) as address,
            Screen(
                "code", "-m", "openai:m", "--base-url", f"{address}/v1", QUESTION, folder=project, columns=100, rows=60,
                **kept,
            ) as screen,
        ):  # fmt: skip
            screen.wait_for("[y]es")
            screen.type("y", ENTER)
            screen.wait_for("[y]es", count=2)
            screen.type("y", ENTER)
            screen.wait_for("(api.py:5).")
            screen.type("/undo", ENTER)
            screen.wait_for("Not restored:")
            screen.type(CTRL_D)
            assert screen.wait_for_end() == 0
            lines = screen.text.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(f"› {QUESTION[:20]}"))
    end = next(at for at, line in enumerate(lines) if line.startswith("Not restored:"))
    shown = "\n".join(lines[start : end + 1]).replace(str(project), "/home/you/project")
    # How long a call took depends on the machine.
    return re.sub(r"  \([\d.]+ s\)", "", shown)


def shorten(session: str) -> str:
    """The same with only the first question of the program: the README is short."""
    lines = session.splitlines()
    second = next(at for at, line in enumerate(lines) if line == "▸ bash asks to run")
    result = next(at for at, line in enumerate(lines) if line.startswith("▸ bash  "))
    end = lines.index("", result)
    return "\n".join([*lines[1:second], "...", *lines[result:end]])


def insert(page: Path, session: str) -> str:
    """The text of a page with this session."""
    text = page.read_text(encoding="utf-8")
    shown = f'$ ferrule code "{QUESTION}"\n{session}\n'
    assert BLOCK.search(text), f"{page} has no place for it"
    return BLOCK.sub(lambda found: found[1] + shown + found[2], text)


def main() -> None:
    """Write the session into the documents."""
    session = record()
    for page, shown in ((README, shorten(session)), (DOCUMENT, session)):
        page.write_text(insert(page, shown), encoding="utf-8")


if __name__ == "__main__":
    main()
