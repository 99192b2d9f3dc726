"""Reads what test runners write: by machine formats where they have one, else by the lines that they end with."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from xml.etree import ElementTree as Xml

__all__ = ["TestReport", "read_junit_xml", "read_runner_output"]

MAX_REPORT_BYTES: Final = 16 * 1024 * 1024
_MOST_DIGITS: Final = 9


@dataclass(slots=True)
class TestReport:
    """The counts of a run, the names of the tests that failed, and the text of the first failure."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)
    first_failure: str = ""

    def add_failure(self, name: str, text: str = "") -> None:
        """Note a test that failed; the text of the first one is kept."""
        if not self.failures:
            self.first_failure = text.strip("\n")
        self.failures.append(name)

    @property
    def total(self) -> int:
        """How many tests were run or skipped."""
        return self.passed + self.failed + self.skipped


def read_junit_xml(text: str) -> TestReport | None:
    """Read the report that pytest and others write; None if it isn't one."""
    try:
        root = Xml.fromstring(text)
    except Xml.ParseError:
        return None
    report = TestReport()
    for case in root.iter("testcase"):
        problem = case.find("failure")
        problem = case.find("error") if problem is None else problem
        if problem is not None:
            report.failed += 1
            report.add_failure(_name_case(case), problem.text or problem.get("message") or "")
        elif case.find("skipped") is not None:
            report.skipped += 1
        else:
            report.passed += 1
    return report


def _name_case(case: Xml.Element) -> str:
    """A test's name as pytest takes it: of `tests.test_a.TestX` and `test_y`, `tests/test_a.py::TestX::test_y`."""
    name, parts = case.get("name") or "?", (case.get("classname") or "").split(".")
    classes: list[str] = []
    while len(parts) > 1 and parts[-1][:1].isupper():
        classes.insert(0, parts.pop())
    if parts == [""]:
        return name
    return "::".join([f"{'/'.join(parts)}.py", *classes, name])


def read_runner_output(runner: str, output: str, errors: str) -> TestReport | None:
    """Read a runner's output; None if no counts can be found in it."""
    first = _READERS.get(runner)
    readers = [first] if first is not None and runner not in _OTHERS_INSIDE else list(_READERS.values())
    for reader in readers:
        with suppress(_TooManyDigits):
            report = reader(output, errors)
            if report is not None:
                return report
    return None


class _TooManyDigits(Exception):  # noqa: N818 - says what the text has
    """A number in an output is no count of tests, and may be one that Python refuses to convert."""


def _read_count(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise _TooManyDigits
    return int(digits)


def _read_go(output: str, _errors: str) -> TestReport | None:
    """Read the JSON lines of `go test -json`; a test with subtests is not counted beside them."""
    report, texts, ends = TestReport(), dict[str, list[str]](), dict[str, str]()
    build, tests = list[str](), set[str]()
    for line in output.splitlines():
        try:
            event: dict[str, Any] = json.loads(line)
            action, test = event["Action"], event.get("Test")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        name = f"{event.get('Package', '')}.{test}" if test else event.get("Package", "") or event.get("ImportPath", "")
        if test:
            tests.add(name)
        if action == "output":
            texts.setdefault(name, []).append(str(event.get("Output", "")))
        elif action == "build-output":
            build.append(str(event.get("Output", "")))
        elif action in ("pass", "fail", "skip") and (test or action == "fail"):
            ends[name] = action
    names, failed = sorted(ends), sorted(name for name, end in ends.items() if end == "fail")
    for name, end in ends.items():
        # A package that failed because a test in it did isn't counted beside that.
        if _begins_any(f"{name}/", names) or (end == "fail" and _begins_any(f"{name}.", failed)):
            continue
        report.passed += end == "pass"
        report.skipped += end == "skip"
        if end == "fail":
            report.failed += 1
            report.add_failure(name, "".join(texts.get(name, ()) if name in tests else build or texts.get(name, ())))
    return report if ends or build else None


def _begins_any(beginning: str, names: list[str]) -> bool:
    """Whether one of the names, which are sorted, begins so."""
    at = bisect_left(names, beginning)
    return at < len(names) and names[at].startswith(beginning)


_CARGO_RESULT: Final = re.compile(r"(?m)^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;")
_CARGO_FAILED: Final = re.compile(r"(?m)^test (.+) \.\.\. FAILED$")


def _read_cargo(output: str, _errors: str) -> TestReport | None:
    results = _CARGO_RESULT.findall(output)
    if not results:
        return None
    passed, failed, skipped = (sum(_read_count(each[place]) for each in results) for place in range(3))
    report = TestReport(passed, failed, skipped)
    for shown in _CARGO_FAILED.findall(output):
        name = shown.partition(" - ")[0]
        report.add_failure(name, "" if report.failures else _find_cargo_text(name, output))
    return report


def _find_cargo_text(name: str, output: str) -> str:
    text = re.search(rf"(?ms)^---- {re.escape(name)} stdout ----\n(.*?)(?=^---- |^failures:$|\Z)", output)
    return text[1] if text else ""


_UNITTEST_RAN: Final = re.compile(r"(?m)^Ran (\d+) tests? in ")
_UNITTEST_END: Final = re.compile(r"(?m)^(?:OK|FAILED|NO TESTS RAN)(?: \(([^)\n]*)\))?$")
_UNITTEST_FAILURE: Final = re.compile(r"(?ms)^={70}\n(?:FAIL|ERROR): ([^\n]+)\n(.*?)(?=^={70}\n|^-{70}\nRan |\Z)")


def _read_unittest(output: str, errors: str) -> TestReport | None:
    text = f"{output}\n{errors}"
    ran, end = _UNITTEST_RAN.search(text), _UNITTEST_END.search(text)
    if ran is None:
        return None
    counts = [part.partition("=") for part in ((end[1] if end else None) or "").split(",")]
    wrong = {name.strip(): _read_count(number) for name, _, number in counts if number.isdecimal()}
    failed = wrong.get("failures", 0) + wrong.get("errors", 0) + wrong.get("unexpected successes", 0)
    skipped = wrong.get("skipped", 0)
    report = TestReport(max(0, _read_count(ran[1]) - failed - skipped), failed, skipped)
    for name, block in _UNITTEST_FAILURE.findall(text):
        report.add_failure(_name_unittest(name), block.strip("-\n"))
    return report


def _name_unittest(shown: str) -> str:
    """Of `test_x (mod.Case.test_x)`, or before Python 3.11 `test_x (mod.Case)`, the dotted name."""
    found = re.match(r"(\w+) \(([\w.]+)\)", shown)
    if found is None:
        return shown
    return found[2] if found[2].endswith(f".{found[1]}") else f"{found[2]}.{found[1]}"


_TAP_LINE: Final = re.compile(r"(?m)^( *)(not )?ok\b(?: \d+)?(?: -)? ?([^\n#]*)(?:# *(\w+)[^\n]*)?$")


def _read_tap(output: str, _errors: str) -> TestReport | None:
    """Read the Test Anything Protocol, which `node --test` and others write: the lines without inner ones."""
    if not re.search(r"(?m)^TAP version \d+|^1\.\.\d+", output):
        return None
    report = TestReport()
    lines = list(_TAP_LINE.finditer(output))
    for number, found in enumerate(lines):
        # The line of a suite comes after those of its tests, which are indented.
        if number and len(lines[number - 1][1]) > len(found[1]):
            continue
        directive = (found[4] or "").upper()
        if directive in ("SKIP", "TODO"):
            report.skipped += 1
        elif found[2]:
            report.failed += 1
            end = lines[number + 1].start() if number + 1 < len(lines) else len(output)
            report.add_failure(
                found[3].strip() or "(without a name)", output[found.end() : end].split("\n# Subtest", maxsplit=1)[0]
            )
        else:
            report.passed += 1
    return report if lines else None


_NODE_COUNT: Final = re.compile(r"(?m)^[#ℹ] (pass|fail|skipped|todo|cancelled) (\d+)$")
_NODE_FAILURE: Final = re.compile(r"(?m)^ *✖ (?!failing tests:)([^\n]+?)(?: \([\d.]+ ?m?s\))?$")
_JEST: Final = re.compile(r"(?m)^ *Tests:? +((?:\d+ \w+[,|() ]*)+)")
_JEST_FAILURE: Final = re.compile(r"(?m)^ *(?:● |FAIL +(?=[^\n]+ > ))([^\n]+)$")
_MOCHA: Final = re.compile(r"(?m)^ *(\d+) (passing|failing|pending)\b")
_MOCHA_FAILURE: Final = re.compile(r"(?m)^  \d+\) ([^\n]+(?:\n {7,}[^\n]+){0,20}?):$")
_MOST_AFTER_NAME: Final = 4_000


def _read_npm(output: str, errors: str) -> TestReport | None:
    """Read what jest, vitest, mocha or `node --test` write for people."""
    text = f"{output}\n{errors}"
    counts, failure = {name: _read_count(number) for name, number in _NODE_COUNT.findall(text)}, _NODE_FAILURE
    if (found := _JEST.search(text)) is not None:
        counts, failure = (
            {name: _read_count(number) for number, name in re.findall(r"(\d+) (\w+)", found[1])},
            _JEST_FAILURE,
        )
    elif not counts:
        counts, failure = {name: _read_count(number) for number, name in _MOCHA.findall(text)}, _MOCHA_FAILURE
    if not counts:
        return None
    report = TestReport(
        counts.get("pass", 0) + counts.get("passed", 0) + counts.get("passing", 0),
        sum(counts.get(name, 0) for name in ("fail", "failed", "failing", "cancelled")),
        sum(counts.get(name, 0) for name in ("skipped", "todo", "pending")),
    )
    # A test may be named twice: in its turn, and with the reason further below.
    found_failures = list(failure.finditer(text))
    last = {" ".join(each[1].split()): each.end() for each in found_failures}
    for name, end in last.items() if report.failed else ():
        following = len(text)
        if not report.failures:
            following = min((each.start() for each in found_failures if each.start() > end), default=following)
        report.add_failure(name, text[end : min(following, end + _MOST_AFTER_NAME)])
    return report


_PYTEST_END: Final = re.compile(
    r"(?m)^(?:=+ )?((?:\d+ (?:passed|failed|skipped|errors?|xfailed|xpassed|deselected|warnings?)(?:, )?)+) in [\d.]+"
)
_PYTEST_FAILED: Final = re.compile(r"(?m)^(?:FAILED|ERROR) (\S+)")


def _read_pytest(output: str, _errors: str) -> TestReport | None:
    """Read pytest's last line, where its report wasn't written."""
    end = _PYTEST_END.search(output)
    if end is None:
        return None
    counts = {
        name.rstrip("s") if name.startswith("error") else name: _read_count(number)
        for number, name in re.findall(r"(\d+) (\w+)", end[1])
    }
    passed = counts.get("passed", 0) + counts.get("xpassed", 0)
    report = TestReport(
        passed, counts.get("failed", 0) + counts.get("error", 0), counts.get("skipped", 0) + counts.get("xfailed", 0)
    )
    blocks = re.search(r"(?ms)^=+ (?:FAILURES|ERRORS) =+\n(.*?)(?=^=+ )", output)
    for name in _PYTEST_FAILED.findall(output):
        report.add_failure(name, blocks[1] if blocks else "")
    return report


_READERS: Final[dict[str, Callable[[str, str], TestReport | None]]] = {
    "go": _read_go,
    "cargo": _read_cargo,
    "pytest": _read_pytest,
    "unittest": _read_unittest,
    "tap": _read_tap,
    "npm": _read_npm,
}
_OTHERS_INSIDE: Final = frozenset({"npm", "tap"})
"""Runners that are known to start one of the others."""
