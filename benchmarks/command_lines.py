"""Times the parser of shell command lines: how long it takes to tell what a command would do.

    python benchmarks/command_lines.py [--json] [--rounds 30]

Judges usual commands of a coding agent, and chains and here-documents of 10 KB to 100 KB. A figure is the median over
the rounds of CPU time per command line, in milliseconds. Ends with 1 where a limit is exceeded.
"""

import argparse
import json
import statistics
import sys
import time

from ferrule.sandbox.shell.command_line import parse_command_line

FOLDER = "/workspace"
USUAL = [
    "ls -la",
    "git status --short",
    "git diff HEAD~1 -- src | head -100",
    "cat README.md",
    "sed -n 1,120p src/api.py",
    'grep -rn "def fetch" src tests --include="*.py"',
    "rg -n 'TODO|FIXME' src",
    "find . -name '*.py' -not -path './.venv/*' | xargs wc -l",
    "cd src && npm test 2>&1 | tail -20",
    "python -m pytest -q tests/test_api.py -k 'fetch and not slow'",
    "timeout 60 make -j4 build > build.log 2>&1; tail -5 build.log",
    "mkdir -p src/new && cp src/a.py src/new/b.py && rm -rf build",
    'git add -A && git commit -m "Handle errors of fetch"',
    'for f in src/*.py; do echo "$f"; head -3 "$f"; done',
    "cat > notes.md <<'EOF'\n# Notes\n\nSome text with `code` and $variables.\nEOF",
    "if [ -f package.json ]; then jq .scripts package.json; else echo none; fi",
]
CHAIN = 'echo "step {0}" && grep -n name{0} src/file_{0}.py | sort -u > out/{0}.txt\n'
TEXT = 'Some text with `code`, $variables and "quotes" on line {0}.\n'
LIMITS = {"usual, median": 0.3, "10 KB": 40.0}
GROWTH = 1.5
"""How much more than ten times the time of 10 KB a text of 100 KB may take."""


def make_chain(size: int) -> str:
    """Make a chain of about `size` bytes; beyond the limit of parts, of longer commands."""
    words = " ".join(f'"argument {index}"' for index in range(max(0, size // 10_000 - 1) * 7))
    line = CHAIN.replace("\n", f" {words}\n")
    made = "".join(line.format(index) for index in range(size // len(line.format(10)) + 1))
    return made[: made.rfind("\n", 0, size)]


def make_document(size: int) -> str:
    """Make a command with a here-document of about `size` bytes."""
    return "cat > file <<'EOF'\n" + "".join(TEXT.format(index) for index in range(size // len(TEXT))) + "EOF\n"


def measure(text: str, rounds: int) -> float:
    """The median CPU time in milliseconds of judging `text`."""
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        parse_command_line(text, FOLDER)
        taken.append((time.process_time() - started) * 1000)
    return statistics.median(taken)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Times the parser of shell command lines.")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--rounds", type=int, default=30, help="how often each is measured")
    arguments = parser.parse_args()
    unread = [text for text in USUAL if parse_command_line(text, FOLDER).problem]
    if unread:
        sys.exit(f"these weren't judged: {unread}")
    figures = {"usual, median": statistics.median(measure(text, arguments.rounds) for text in USUAL)}
    for size, name in ((10_000, "10 KB"), (100_000, "100 KB")):
        for kind, text in (("chain", make_chain(size)), ("here-document", make_document(size))):
            if parse_command_line(text, FOLDER).problem:
                sys.exit(f"the {kind} of {name} wasn't judged: {parse_command_line(text, FOLDER).problem}")
            figures[f"{name}, {kind}"] = measure(text, max(3, arguments.rounds // 5))
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, figure in figures.items():
            limit = next((f" (at most {most:g})" for start, most in LIMITS.items() if name.startswith(start)), "")
            print(f"{name:24} {figure:8.3f} ms{limit}")
    wrong = [
        name
        for name, figure in figures.items()
        for start, most in LIMITS.items()
        if name.startswith(start) and figure > most
    ]
    kinds = ("chain", "here-document")
    wrong += [
        f"100 KB, {kind}" for kind in kinds if figures[f"100 KB, {kind}"] > 10 * GROWTH * figures[f"10 KB, {kind}"]
    ]
    if wrong:
        sys.exit("over the limit: " + ", ".join(wrong))


if __name__ == "__main__":
    main()
