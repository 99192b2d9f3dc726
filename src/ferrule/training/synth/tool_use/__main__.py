"""`python -m ferrule.training.synth.tool_use FILE…` checks files of tool templates and prints every problem."""

import sys
from pathlib import Path

from ferrule.training.synth.tool_use.template_parsing import parse_tool_templates


def main(paths: list[str]) -> int:
    """Print the problems of template files and what is in them; 1 if there is a problem."""
    texts = {path: Path(path).read_text("utf-8") for path in paths}
    tools, problems = parse_tool_templates(texts)
    for problem in problems:
        print(problem)
    lines = sum(len(tool.phrasings) for tool in tools)
    print(f"{len(tools)} tools with {lines} phrasings; {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
