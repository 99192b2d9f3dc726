"""The pictures of `docs/screenshots/`, from what the commands print on a terminal: `python docs/take_screenshots.py`.

Each command runs in a terminal of its own, and rich draws what it printed. Rich's template fetches fonts from another
host; they are left out, so that a picture is shown in the reader's own font and nobody else is asked. Pages that a
command writes are opened in Chromium, where there is one.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

FOLDER = Path(__file__).with_name("screenshots")
COLUMNS = 80
COMMANDS = {
    "ask": 'ferrule ask "What is 123456 * 789?"',
    "render": "ferrule render conversation.json",
    "parse": "ferrule parse --dialect qwen25 answer.txt",
}
FILES = {
    "conversation.json": """{"messages": [
  {"role": "user", "content": "What is 12 * 34?"},
  {"role": "assistant", "content": [
    {"type": "python", "text": "12 * 34"},
    {"type": "python_output", "text": "408"},
    {"type": "text", "text": "12 × 34 is 408."}]}]}
""",
    "answer.txt": """Let me look.
<tool_call>
{"name": "weather", "arguments": {"city": "Paris", "days": 3}}
</tool_call>""",
}
PAGES = {"report": "ferrule analyze --replay {examples}/analysis/sales.jsonl --report page.html"}
"""Commands that write `page.html`, by the names of their pictures."""
EXAMPLES = Path(__file__).parents[1] / "examples"
PAGE_SIZE = (900, 1500)
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def read_terminal(command: str, folder: Path) -> str:
    """What a command prints on a terminal with colours, in a folder with the files above."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    own = {name: value for name, value in os.environ.items() if name != "NO_COLOR" and not name.startswith("FERRULE")}
    environment = {**own, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": str(COLUMNS), "LANG": "C.UTF-8"}
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        shlex.split(command), cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        pieces = []
        while piece := _read(ours):
            pieces.append(piece)
    os.close(ours)
    if process.returncode != 0:
        raise SystemExit(f"{command}: exit status {process.returncode}: {b''.join(pieces).decode()}")
    return b"".join(pieces).decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux answers so once the other end is closed
        return b""


def settle(printed: str) -> str:
    """What stays of the printed lines: a carriage return or an erased line begins it again."""
    lines = [re.split(r"\r|\x1b\[2K", line)[-1] for line in printed.split("\n")]
    return re.sub(r"\x1b\[\??\d*[A-HJKSThl]", "", "\n".join(lines))


def take(name: str) -> str:
    """The picture of one command, as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        printed = settle(read_terminal(COMMANDS[name], Path(folder)))
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {COMMANDS[name]}", style="bold"))
    console.print(Text.from_ansi(printed.rstrip("\n")))
    picture = _FONT_FACE.sub("", console.export_svg(title="", unique_id=name))
    return picture.replace("Fira Code, monospace", "ui-monospace, monospace")


def photograph(name: str, browser: str) -> None:
    """Write the picture of a command's page, as PNG: its top, as wide and high as `PAGE_SIZE`."""
    with tempfile.TemporaryDirectory() as folder:
        read_terminal(PAGES[name].format(examples=shlex.quote(str(EXAMPLES))), Path(folder))
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/own"]
        size = f"--window-size={PAGE_SIZE[0]},{PAGE_SIZE[1]}"
        picture = f"--screenshot={FOLDER / name}.png"
        page = Path(folder, "page.html").as_uri()
        subprocess.run([browser, *options, size, picture, page], check=True, capture_output=True)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in COMMANDS:
        (FOLDER / f"{name}.svg").write_text(take(name), encoding="utf-8")
    if browser := shutil.which("chromium") or shutil.which("google-chrome"):
        for name in PAGES:
            photograph(name, browser)
    else:
        print(f"no Chromium here: left as they are: {', '.join(PAGES)}")
