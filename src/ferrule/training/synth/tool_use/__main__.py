"""`python -m ferrule.training.synth.tool_use FILE…` checks files of tool templates and prints every problem."""

import sys
from pathlib import Path

from ferrule._util.pluralize import pluralize
from ferrule.training.synth.tool_use.template_parsing import parse_tool_templates


def main(paths: list[str]) -> int:
    """Print the problems of template files and what is in them; 1 if there is a problem."""
    texts = {path: Path(path).read_text("utf-8") for path in paths}
    tools, problems = parse_tool_templates(texts)
    for problem in problems:
        print(problem)
    lines = sum(len(tool.phrasings) for tool in tools)
    counts = ((len(tools), "tool"), (lines, "phrasing"), (len(problems), "problem"))
    print(", ".join(pluralize(number, noun) for number, noun in counts))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
