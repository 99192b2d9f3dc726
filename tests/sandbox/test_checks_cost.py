"""What checks cost: it grows with the code and no faster, and code that Python reads slowly is read elsewhere."""

import subprocess
import sys
import time
import warnings
from itertools import product

import pytest

from ferrule.sandbox.checks import check, explain_findings
from ferrule.sandbox.checks.findings import MOST
from ferrule.sandbox.checks.in_subprocess import check_here
from ferrule.sandbox.checks.profiles import AT_ONCE, LONGEST
from ferrule.sandbox.python import PythonSandbox

SHAPES = {
    "one line of imports": lambda n: "import " + ",".join(["socket"] * (n // 7)),
    "lines of imports": lambda n: "import socket\n" * (n // 14),
    "modules of one": lambda n: "import " + ",".join(f"socket.a{i}" for i in range(n // 14)),
    "calls": lambda n: "input();" * (n // 8),
    "letters of two bytes": lambda n: "é=input();" * (n // 10),
    "attributes": lambda n: "a.remove;" * (n // 9),
    "chains of attributes": lambda n: "input()\n" + ("a" + ".a" * 400 + "\n") * (n // 802),
    "paths": lambda n: "x='/';" * (n // 6),
    "names of files": lambda n: "x='a.csv';" * (n // 10),
    "one name of files": lambda n: "x = '" + ".a" * (n // 2) + "'",
    "one name with dots": lambda n: "x = '.a" + "." * n + "'",
    "one home": lambda n: "x = '~" + "a" * n + "'",
    "long names of modules": lambda n: "import " + "a" * (n // 2) + " as x;" + "x.b;" * (n // 8) + "input()",
    "names from a long module": lambda n: "from " + "a" * (n // 2) + " import " + ",".join(["input"] * (n // 12)),
    "blank lines": lambda n: "\n" * n + "input()",
}


def steps(code, profile):
    """Lines of Python that run to check some code."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        check_here(code, profile)
    finally:
        sys.settrace(before)
    return count


PROFILES = ("strict", "advise")
SAMPLE = [(shape, PROFILES[number % 2]) for number, shape in enumerate(SHAPES)]
REST = [pytest.param(*pair, marks=pytest.mark.slow) for pair in product(SHAPES, PROFILES) if pair not in SAMPLE]


@pytest.mark.parametrize(("shape", "profile"), [*SAMPLE, *REST])
def test_twice_the_code_takes_twice_the_steps(shape, profile):
    check_here("import socket", profile)
    make_once, twice = (steps(SHAPES[shape](n), profile) for n in (5_000, 10_000))
    assert twice < 2.3 * make_once + 200


@pytest.mark.parametrize(("shape", "profile"), [*SAMPLE, *REST])
def test_much_code_takes_little_processor_time(shape, profile):
    """0.05 to 0.7 s; where each finding looked for its line in all of the code, most of these took more than 25 s."""
    code = SHAPES[shape](140_000)
    started = time.process_time()
    check_here(code, profile)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("profile", ["strict", "advise"])
@pytest.mark.parametrize(
    "code",
    [
        "def f():0\n" * 19_500,
        "x=f'" + "{a}" * 65_000 + "'",
        "f(" + ",".join(f"a{i}=0" for i in range(20_000)) + ")",
        "import " + ".".join(["a"] * 95_000),
        "def f():\n " + "=".join(f"a{i}" for i in range(13_000)) + "=0\n" + " class A:0\n" * 8_000,
    ],
    ids=["definitions", "formatted", "keywords", "dotted", "scopes"],
)
def test_what_python_itself_reads_slowly_takes_no_time_of_this_process(code, profile):
    """2 to 20 s of it, with the interpreter's lock held, where this process parsed them."""
    assert AT_ONCE < len(code) <= LONGEST
    started = time.process_time()
    check(code, profile=profile, seconds=0.5)
    assert time.process_time() - started < 0.4


def test_code_that_takes_too_long_to_read_is_told_and_refused_by_the_seed_only():
    code = "x = 1\n" * AT_ONCE
    [finding] = check(code, seconds=0.001)
    assert (finding.rule, finding.refuses) == ("length", False)
    assert "takes longer to read than the 0.001 s that checks have: not checked" in finding.message
    [finding] = check(code, profile="strict", seconds=0.001)
    assert finding.refuses


def test_long_code_has_the_findings_of_short_code():
    code = "import requests\né = 'ü'; input()\n" + "x = '\ud83d\ude00'\n".encode("utf-16", "surrogatepass").decode(
        "utf-16"
    )
    long = code + "y = 1\n" * (AT_ONCE // 6)
    assert check(long) == check(code) != ()
    assert check(long, profile="strict") == check(code, profile="strict")
    [finding] = check("x = '\ud800'\n" + "y = 1\n" * AT_ONCE)
    assert "U+D800" in finding.message


def test_the_process_that_reads_long_code_runs_nothing_of_it(tmp_path):
    canary = tmp_path / "canary"
    code = f"open({str(canary)!r}, 'w')\n" + "x = 1\n" * AT_ONCE
    assert check(code) == ()
    assert not canary.exists()


@pytest.mark.parametrize("profile", ["strict", "advise"])
def test_findings_are_listed_up_to_a_number_and_then_counted(profile):
    code = "import " + ", ".join(f"socket.a{i}" for i in range(500))
    findings = check(code, profile=profile)
    assert len(findings) == MOST + 1
    assert [finding.name for finding in findings[:2]] in (["socket", "socket"], ["socket.a0", "socket.a1"])
    assert (findings[-1].rule, findings[-1].refuses) == ("length", profile == "strict")
    assert explain_findings(findings).endswith("400 more findings are not listed; fix these first")


def test_a_long_line_is_not_shown_with_each_of_its_findings():
    findings = check("import socket, ssl; x = " + "1 + " * 100 + "1; input()")
    assert [finding.source for finding in findings] == [""] * 3
    assert len(explain_findings(check("import socket." + "a" * 5_000))) < 500


def test_reading_code_leaves_the_filters_of_warnings_to_their_owner():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(r"x = '\d'")
        filters = list(warnings.filters)
        check(r"x = '\d'; 1 is 1")
        assert list(warnings.filters) == filters
        with pytest.raises(SyntaxError):
            compile(r"x = '\d'", "<other>", "exec")
        warnings.simplefilter("error")
        assert check(r"x = '\d'") == ()


def test_reading_code_warns_nobody_in_a_fresh_process():
    program = r"from ferrule.sandbox.checks import check; assert check('x = \'\\d\'; 1 is 1') == ()"
    done = subprocess.run([sys.executable, "-W", "default", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


async def test_a_run_of_code_that_is_slow_to_read_keeps_its_time():
    """The checks have the time of the run, and the loop goes on meanwhile."""
    code = "def f():0\n" * 19_500 + "while 1: 0"
    async with PythonSandbox(packages=()) as sandbox:
        started = time.process_time()
        run = await sandbox.run(code, timeout=0.05)
        assert time.process_time() - started < 0.4
        assert run.error is not None
        assert run.error.kind == "timeout"
        [finding] = run.findings
        assert finding.rule == "length"
        assert (await sandbox.run("1 + 1")).value == 2
    async with PythonSandbox(packages=(), checks="strict") as sandbox:
        refused = await sandbox.run(code, timeout=0.05)
        assert refused.error is not None
        assert refused.error.kind == "refused"
