"""The reports of test runners that aren't installed here, as they write them, and damaged ones."""

# ruff: noqa: E501 - reports are as they are written
from __future__ import annotations

import time

import pytest

from ferrule.coding.run_tests.reports import read_junit_xml, read_runner_output
from tables import each_case

GO = """\
{"Time":"2026-01-02T03:04:05Z","Action":"start","Package":"example.com/demo"}
{"Time":"2026-01-02T03:04:05Z","Action":"run","Package":"example.com/demo","Test":"TestAdds"}
{"Time":"2026-01-02T03:04:05Z","Action":"output","Package":"example.com/demo","Test":"TestAdds","Output":"=== RUN   TestAdds\\n"}
{"Time":"2026-01-02T03:04:05Z","Action":"pass","Package":"example.com/demo","Test":"TestAdds","Elapsed":0}
{"Time":"2026-01-02T03:04:05Z","Action":"run","Package":"example.com/demo","Test":"TestSum"}
{"Time":"2026-01-02T03:04:05Z","Action":"run","Package":"example.com/demo","Test":"TestSum/small"}
{"Time":"2026-01-02T03:04:05Z","Action":"output","Package":"example.com/demo","Test":"TestSum/small","Output":"    demo_test.go:9: got 3, want 4\\n"}
{"Time":"2026-01-02T03:04:05Z","Action":"fail","Package":"example.com/demo","Test":"TestSum/small","Elapsed":0}
{"Time":"2026-01-02T03:04:05Z","Action":"fail","Package":"example.com/demo","Test":"TestSum","Elapsed":0}
{"Time":"2026-01-02T03:04:05Z","Action":"skip","Package":"example.com/demo","Test":"TestLater","Elapsed":0}
{"Time":"2026-01-02T03:04:05Z","Action":"output","Package":"example.com/demo","Output":"FAIL\\n"}
{"Time":"2026-01-02T03:04:05Z","Action":"fail","Package":"example.com/demo","Elapsed":0.002}
"""

GO_BUILD = """\
{"ImportPath":"example.com/demo [example.com/demo.test]","Action":"build-output","Output":"# example.com/demo\\n"}
{"ImportPath":"example.com/demo [example.com/demo.test]","Action":"build-output","Output":"./demo.go:4:9: undefined: x\\n"}
{"ImportPath":"example.com/demo [example.com/demo.test]","Action":"build-fail"}
{"Time":"2026-01-02T03:04:05Z","Action":"start","Package":"example.com/demo"}
{"Time":"2026-01-02T03:04:05Z","Action":"output","Package":"example.com/demo","Output":"FAIL\\texample.com/demo [build failed]\\n"}
{"Time":"2026-01-02T03:04:05Z","Action":"fail","Package":"example.com/demo","Elapsed":0,"FailedBuild":"example.com/demo [example.com/demo.test]"}
"""

JEST = """\
FAIL ./sum.test.js
  ✓ adds 1 + 2 to equal 3 (2 ms)
  ✕ adds wrongly (3 ms)
  ○ skipped later

  ● adds wrongly

    expect(received).toBe(expected) // Object.is equality

    Expected: 4
    Received: 3

Test Suites: 1 failed, 1 total
Tests:       1 failed, 1 skipped, 1 passed, 3 total
Snapshots:   0 total
Time:        0.512 s
"""

VITEST = """\
 ❯ sum.test.js  (3 tests | 1 failed | 1 skipped) 8ms
   × adds wrongly
     → expected 3 to be 4 // Object.is equality

⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  sum.test.js > adds wrongly
AssertionError: expected 3 to be 4 // Object.is equality

 Test Files  1 failed (1)
      Tests  1 failed | 1 passed | 1 skipped (3)
   Start at  10:00:00
   Duration  300ms
"""

MOCHA = """\

  sum
    ✔ adds
    1) adds wrongly
    - later

  1 passing (5ms)
  1 pending
  1 failing

  1) sum
       adds wrongly:

      AssertionError [ERR_ASSERTION]: 3 == 4
      + expected - actual
"""

NODE_SPEC = """\
✔ adds (0.5ms)
✖ adds wrongly (1.2ms)
﹣ later (0.1ms) # SKIP
ℹ tests 3
ℹ suites 0
ℹ pass 1
ℹ fail 1
ℹ cancelled 0
ℹ skipped 1
ℹ todo 0
ℹ duration_ms 51.2

✖ failing tests:

test at a.test.js:3:1
✖ adds wrongly (1.2ms)
  AssertionError [ERR_ASSERTION]: 3 == 4
"""

TAP = """\
TAP version 13
ok 1 - adds
not ok 2 - adds wrongly
  ---
  message: 3 == 4
  ...
ok 3 - later # SKIP not now
1..3
"""

TAP_SUITES = """\
TAP version 13
# Subtest: sum
    # Subtest: adds
    ok 1 - adds
    # Subtest: adds wrongly
    not ok 2 - adds wrongly
      ---
      error: '3 == 4'
      ...
    ok 3 - later # SKIP
    1..3
not ok 1 - sum
1..1
"""


@each_case(
    ("runner", "output", "name"),
    [
        ("go", GO, "example.com/demo.TestSum/small"),
        ("npm", JEST, "adds wrongly"),
        ("npm", VITEST, "sum.test.js > adds wrongly"),
        ("npm", MOCHA, "sum adds wrongly"),
        ("npm", NODE_SPEC, "adds wrongly"),
        ("npm", TAP, "adds wrongly"),
        ("npm", TAP_SUITES, "adds wrongly"),
        ("make", TAP, "adds wrongly"),
        ("make", GO, "example.com/demo.TestSum/small"),
    ],
)
def test_reports(runner: str, output: str, name: str) -> None:
    report = read_runner_output(runner, output, "")
    assert report is not None
    assert (report.passed, report.failed, report.skipped) == (1, 1, 1)
    assert report.failures == [name]
    assert "4" in report.first_failure


def test_a_package_that_cannot_be_built_is_a_failure_with_the_reason() -> None:
    report = read_runner_output("go", GO_BUILD, "")
    assert report is not None
    assert (report.passed, report.failed) == (0, 1)
    assert report.failures == ["example.com/demo"]
    assert "undefined: x" in report.first_failure


@each_case("output", ["", "all is well", "Tests: none", "ok", "{}", '{"Action": 3}', "[1]\nnull\n1", "passed"])
def test_what_is_no_report(output: str) -> None:
    for runner in ("go", "cargo", "npm", "unittest", "pytest", "make"):
        assert read_runner_output(runner, output, output) is None


@pytest.mark.parametrize("text", ["", "no xml", "<testsuites>", "<a/>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"])
def test_damaged_junit_xml(text: str) -> None:
    report = read_junit_xml(text)
    assert report is None or report.total == 0


def test_entities_that_expand_without_end_are_refused() -> None:
    levels = "".join(f'<!ENTITY x{n + 1} "{f"&x{n};" * 20}">' for n in range(12))
    began = time.monotonic()
    report = read_junit_xml(f'<!DOCTYPE a [<!ENTITY x0 "lol">{levels}]><testsuite><testcase name="&x12;"/></testsuite>')
    assert report is None
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "line", ["  1) " + "a\n       " * 5_000, "ok " * 50_000, "Tests: " + "1 x, " * 20_000, "✖ " * 50_000, "=" * 200_000]
)
def test_reading_takes_a_bounded_time(line: str) -> None:
    began = time.process_time()
    for runner in ("go", "cargo", "npm", "unittest", "pytest", "make"):
        read_runner_output(runner, line, line)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("runner", "output"),
    [
        ("go", "".join(f'{{"Action":"fail","Test":"t{number}"}}\n' for number in range(25_000))),
        ("cargo", "test result: ok. 0 passed; 1 failed; 0 ignored;\n" + "test " + " - " * 300_000),
        ("cargo", "test result: ok. 0 passed; 1 failed; 0 ignored;\n" + "test a ... FAILED\n" * 50_000),
        ("npm", "# fail 1\n" + "".join(f"✖ {number}\n" for number in range(80_000))),
        ("unittest", f"Ran 1 test in 1s\nFAILED ({'a' * 900_000})"),
    ],
)
def test_no_output_takes_more_than_linear_time(runner: str, output: str) -> None:
    assert read_runner_output(runner, output, "") is not None


MANY = "9" * 5_000


@each_case(
    ("runner", "output"),
    [
        ("pytest", f"=== {MANY} passed in 0.01s ==="),
        ("pytest", f"=== 1 failed, {MANY} passed in 0.01s ==="),
        ("cargo", f"test result: ok. {MANY} passed; 0 failed; 0 ignored; 0 measured"),
        ("unittest", f"Ran {MANY} tests in 0.001s\n\nOK"),
        ("unittest", f"Ran 3 tests in 0.001s\n\nFAILED (failures={MANY})"),
        ("npm", f"# pass 1\n# fail {MANY}"),
        ("npm", f"Tests:  1 failed, {MANY} passed, 3 total"),
        ("npm", f"  {MANY} passing (3ms)"),
    ],
)
def test_a_number_that_is_no_count_of_tests_is_not_understood(runner: str, output: str) -> None:
    """Also one that Python converts is none: the others of the same line aren't taken without it."""
    assert read_runner_output(runner, output, "") is None
    assert read_runner_output(runner, output.replace(MANY, MANY[:10]), "") is None
    assert read_runner_output(runner, output.replace(MANY, MANY[:9]), "") is not None
