"""Checks code before it runs, by a profile of `ferrule.sandbox.checks`, and says which way is open instead.

Code opens no file: its tables are bound beforehand, and its figures are collected. So a refusal names `tables[…]`,
`results[…]` or figures, where the checks' own words can only speak of inputs in general.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ferrule.analysis.python_executor.error_context import ErrorContext, get_line

if TYPE_CHECKING:
    from ferrule.sandbox.checks import Finding

_READERS: Final = re.compile(r"read_\w+|read|open|io|loadtxt|genfromtxt|fromfile|memmap|listdir|scandir|walk|glob")
_FILE_MODULES: Final = re.compile(
    r"os|_?io|pathlib|glob|shutil|tempfile|gzip|bz2|lzma|zipfile|tarfile|pickle|fileinput|linecache|shelve|posixpath"
)
_DATABASES: Final = re.compile(r"sqlite3|dbm|\w+_sql")
_WRITERS: Final = re.compile(r"to_\w+|write\w*|save\w*|tofile|truncate|dump")
_FIGURES: Final = frozenset({"savefig", "png", "jpg", "jpeg", "svg", "pdf"})
_MOST: Final = 10


def explain_refusal(
    findings: Sequence[Finding], code: str, tables: Sequence[str], results: Sequence[str]
) -> ErrorContext:
    """What was refused, and for each finding what to do in its place."""
    first = findings[0]
    # With a single one, its line is said once, as the line of the error.
    places = [f"line {finding.line}: " if len(findings) > 1 else "" for finding in findings[:_MOST]]
    messages = [f"{place}{finding.message}" for place, finding in zip(places, findings, strict=False)]
    fixes = [
        f"{place}{name_open_way(finding, tables, results)}" for place, finding in zip(places, findings, strict=False)
    ]
    left = len(findings) - len(messages)
    return ErrorContext(
        error_type="SafetyViolation",
        error_message="; ".join(messages) + (f"; and {left} more" if left > 0 else ""),
        problematic_line=first.line,
        problematic_code=get_line(code, first.line),
        variable_name=first.name if first.rule in {"module", "builtin", "attribute"} else "",
        suggested_fixes=tuple(dict.fromkeys(fixes)),
    )


def name_open_way(finding: Finding, tables: Sequence[str], results: Sequence[str]) -> str:
    """What to do in the place of something that is refused."""
    name = finding.name.partition(".")[0]
    extension = re.search(r"\.(\w+)\W*$", finding.name)
    if name in _FIGURES or (finding.rule == "extension" and extension and extension[1].lower() in _FIGURES):
        return "leave the figure open (plt.subplots() and no savefig, show or close): open figures are collected"
    is_file = any(pattern.fullmatch(name) for pattern in (_FILE_MODULES, _DATABASES, _READERS))
    if is_file or finding.rule in {"path", "extension"}:
        refused = f"{name} can't be imported" if finding.rule == "module" else "files can't be opened"
        return f"{refused}; {_name_bound(tables, results)}"
    if finding.rule == "attribute" and _WRITERS.fullmatch(name):
        return "nothing is written to files: assign the table or value to `result`, which is kept as it is"
    if finding.rule == "network":
        return f"there is no network; {_name_bound(tables, results)}"
    return finding.instead


def _name_bound(tables: Sequence[str], results: Sequence[str]) -> str:
    bound = [f"tables[{name!r}]" for name in tables] + [f"results[{name!r}]" for name in results]
    if not bound:
        return "the values of the task are in extracted_values, and there are no tables"
    listed = ", ".join(bound[:_MOST]) + (", …" if len(bound) > _MOST else "")
    is_one = len(bound) == 1
    return f"the data {'is' if is_one else 'are'} bound already: use {listed}"
