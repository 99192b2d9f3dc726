"""What the checks find in code, profile by profile, and that nothing which they read harms them."""

import gzip
import json
import sys
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.sandbox.checks import check, explain_findings
from ferrule.sandbox.checks.profiles import LONGEST
from ferrule.sandbox.python import PythonSandbox
from tables import each_case

HUMANEVAL = Path(__file__).parents[3] / "shared" / "vectors" / "humaneval.jsonl.gz"


def words(text):
    return text.split()


# As the fourth seed prints them.
MODULES = words(
    """os io pathlib glob shutil tempfile socket http urllib ftplib email smtplib subprocess sys signal ctypes
    multiprocessing code codeop imp sqlite3 dbm"""
)
BUILTINS = [
    "open",
    "exec",
    "eval",
    "compile",
    "__import__",
    "input",
    "breakpoint",
    "getattr",
    "setattr",
    "delattr",
    "globals",
    "locals",
    "vars",
    "dir",
]
ATTRIBUTES = words(
    """system popen spawn exec kill remove unlink rmdir mkdir chmod chown read write listdir scandir walk glob
    to_csv read_excel to_excel"""
)


def found(code, profile="strict"):
    return [(one.rule, one.name, one.listed) for one in check(code, profile=profile)]


@each_case("name", MODULES)
@each_case("line", ["import {}", "import {} as x", "import {}.inner", "from {} import x", "def f(): import {}"])
def test_every_module_of_the_seed_is_refused(name, line):
    assert found(line.format(name)) == [("module", name, "original")]
    assert check(line.format(name), profile="strict")[0].refuses


@each_case("name", BUILTINS)
def test_every_builtin_of_the_seed_is_refused_unless_the_code_defines_it(name):
    assert found(f"x = {name}('a')") == [("builtin", name, "original")]
    assert found(f"def {name}(a): return a\n{name}('a')") == []


@each_case("name", ATTRIBUTES)
def test_every_attribute_of_the_seed_is_refused(name):
    assert found(f"x.{name}()") == [("attribute", name, "original")]
    assert found(f"from mine import {name}") == [("attribute", name, "original")]


@each_case(
    ("code", "rule"),
    [
        ("x = '/path/to/file'", "path"),
        ("x = '/'", "path"),
        (r"x = 'C:\\path'", "path"),
        ("x = 'c:/path'", "path"),
        ("x = './relative'", "path"),
        ("x = '../relative'", "path"),
        ("x = '~'", "path"),
        ("x = '~/notes'", "path"),
        ("x = f'/tmp/{name}'", "path"),
        ("x = b'/etc/passwd'", "path"),
        ("f('data.csv')", "extension"),
        ("f('data.XLSX')", "extension"),
        ("f('the file data.json, please')", "extension"),
        ("f(f'{name}.pdf')", "extension"),
        ("f('.csv')", "extension"),
        # What later Pythons read: quotes within a value, strings that are templates.
        *([("x = f'{f('/etc/passwd')}'", "path")] if sys.version_info >= (3, 12) else []),
        *([("x = t'/tmp/{name}'", "path"), ("f(t'{name}.pdf')", "extension")] if sys.version_info >= (3, 14) else []),
    ],
)
def test_strings_that_look_like_files_are_refused(code, rule):
    assert [(one.rule, one.listed) for one in check(code, profile="strict")] == [(rule, "original")]


@each_case(
    "code",
    [
        "x = f'{a}/{b}'",
        "x = 'a/b'",
        "x = '//'",
        "x = 'see ~5'",
        "x = 3.14; y = 'v1.2'; z = 'e.g. this'",
        "x = 'numpy.csv_reader'",
        "def f():\n    '''Reads /etc/passwd and data.csv.'''",
        "x = '\\n'",
        "x = 'https://example.org/a'",
    ],
)
def test_other_strings_pass(code):
    assert found(code) == []


@pytest.mark.parametrize("name", ["read_csv", "read_json", "read_table"])
def test_text_may_be_read_as_a_table_and_a_file_may_not(name):
    assert found(f"import io\nimport pandas as pd\npd.{name}(io.StringIO('a,b\\n1,/tmp/x.csv'))") == []
    assert found(f"from io import StringIO\nimport pandas as pd\ntext = StringIO('a')\npd.{name}(text)") == []
    assert found(f"import io as i\nimport pandas\npandas.{name}(i.StringIO(text), sep=';')") == []
    assert found(f"pd.{name}(name)") == [("attribute", name, "original")]
    assert found(f"text = io.StringIO('a')\ntext = other\nimport io\npd.{name}(text)") == [
        ("attribute", name, "original")
    ]


@pytest.mark.parametrize(
    "code",
    ["import io\nio.open('x')", "import io\nx = io", "from io import BytesIO", "import io\nio.StringIO('a')\nf(io)"],
)
def test_io_is_refused_for_anything_else(code):
    assert found(code) == [("module", "io", "original")]


def test_what_we_add_is_marked_as_ours():
    assert found("import importlib") == [("module", "importlib", "added")]
    assert found("x.__subclasses__()") == [("attribute", "__subclasses__", "added")]
    assert found("f('a.parquet')") == [("extension", "a.parquet", "added")]


@pytest.mark.parametrize(
    ("code", "rule", "name"),
    [
        ("import requests", "network", "requests"),
        ("import urllib.request as r", "network", "urllib.request"),
        ("from urllib import parse, request", "network", "urllib.request"),
        ("from http import client", "network", "http.client"),
        ("import pandas as pd\npd.read_csv('https://example.org/a.csv')", "network", "pandas.read_csv of an address"),
        ("import subprocess", "process", "subprocess"),
        ("import os\nos.system('ls')", "process", "os.system"),
        ("from os import fork", "process", "os.fork"),
        (
            "import concurrent.futures as c\nc.ProcessPoolExecutor()",
            "process",
            "concurrent.futures.ProcessPoolExecutor",
        ),
        ("x = input('?')", "input", "input()"),
        ("breakpoint()", "input", "breakpoint()"),
        ("import tkinter", "input", "tkinter"),
    ],
)
def test_advice_tells_what_can_not_work_and_refuses_nothing(code, rule, name):
    [finding] = check(code)
    assert (finding.rule, finding.name, finding.refuses) == (rule, name, False)
    assert finding.instead


@each_case(
    "code",
    [
        "[1, 2].remove(1)",
        "eval('1 + 1')",
        "import os\nos.path.join('a', 'b')\nos.environ",
        "open('data.csv').read()",
        "from urllib.parse import quote\nfrom http import HTTPStatus",
        "def input(): return 1\ninput()",
        "match x:\n    case {'a': 1, **input}: input()",
        *(["def f[input]():\n    input()"] if sys.version_info >= (3, 12) else []),
        "getattr(1, 'real')\nimport sys, io, sqlite3, ctypes",
        "from concurrent.futures import ThreadPoolExecutor\nfrom multiprocessing.dummy import Process",
        "import asyncio\nawait asyncio.sleep(0)",
        "pd.read_csv('data.csv')",
        "x = 'https://example.org'",
    ],
)
def test_advice_leaves_honest_programs_alone(code):
    assert check(code) == ()


def test_advice_tells_of_each_name_once_at_its_first_place():
    [finding] = check("x = 1\ndef f():\n    return input()\ninput()\n")
    assert (finding.line, finding.column) == (3, 12)


def test_off_finds_nothing_and_unknown_profiles_are_refused():
    assert check("import os; os.system(", profile="off") == ()
    with pytest.raises(ValueError, match="one of strict, advise, off, not 'strictest'"):
        check("1", profile="strictest")


def test_seed_is_another_name_of_strict():
    code = "names.remove('a')"
    assert check(code, profile="seed") == check(code, profile="strict") != ()
    assert PythonSandbox(checks="seed").checks == "strict"


@each_case("profile", ["strict", "advise"])
@each_case(
    ("code", "line", "column", "said"),
    [
        ("x = 1\nfor i in range(3)\n    pass\n", 2, 18, "expected ':'"),
        ("é = (1,\n", 1, 5, "'(' was never closed"),
        ("if x:\nprint(1)", 2, 1, "expected an indented block"),
        ("return 1", 1, 1, "'return' outside function"),
        ("x = 'a\0b'", 1, 7, "U+0000"),
        ("x = 'a'\ny = '\ud800'", 2, 6, "U+D800"),
        ("```python\nx = 1\n```", 1, 1, "without the ``` lines"),
        ("import pandas\n!pip install pandas", 2, 1, "leave it out"),
        ("%matplotlib inline", 1, 1, "leave it out"),
    ],
)
def test_a_syntax_error_is_told_with_its_place(profile, code, line, column, said):
    [finding] = check(code, profile=profile)
    assert (finding.line, finding.column, finding.rule, finding.listed) == (line, column, "syntax", "python")
    assert said in explain_findings([finding])
    assert not finding.refuses
    explain_findings([finding]).encode()


def test_a_syntax_error_is_shown_with_a_caret():
    assert explain_findings(check("total = 1\nif total = 2:\n    pass\n")).endswith("\n    if total = 2:\n       ^")
    assert check("if 1:\n\tif x = 1:\n\t\tpass")[0].caret == "\tif x = 1:\n\t   ^"


def test_columns_count_characters():
    [finding] = check("é = 'ü'; eval(é)", profile="strict")
    assert (finding.line, finding.column) == (1, 10)
    [finding] = check("(values\n    .remove(1))", profile="strict")
    assert (finding.line, finding.column) == (2, 6)


def test_findings_come_in_the_order_of_the_lines():
    code = "x = '/tmp'\nimport os\ny = 'a.csv'\neval(x)\n"
    assert [one.line for one in check(code, profile="strict")] == [1, 2, 3, 4]
    assert explain_findings(check(code, profile="strict")).count("\n") == 3
    assert explain_findings(()) == ""


def test_code_that_is_too_long_to_check_is_refused_by_the_seed_only():
    code = "x = 1\n" * (LONGEST // 6 + 1)
    assert check(code) == ()
    [finding] = check(code, profile="strict")
    assert (finding.rule, finding.refuses) == ("length", True)


NESTED = {
    "brackets": "(" * 5000,
    "signs": "-" * 100_000 + "1",
    "attributes": "a" + ".a" * 50_000,
    "nots": "not " * 40_000 + "1",
    "lambdas": "lambda:" * 25_000 + "1",
    "sums": "a+" * 90_000 + "a",
    "choices": "a if b else " * 15_000 + "c",
    "elifs": "if 1:\n pass\n" + "elif 1:\n pass\n" * 10_000,
    "targets": "x=" * 90_000 + "1",
    "decorators": "@a\n" * 60_000 + "def f(): pass",
    "f-strings": "f'{" * 1000,
    "digits": "9" * 100_000,
}


@pytest.mark.parametrize("profile", ["strict", "advise"])
@pytest.mark.parametrize("shape", NESTED)
def test_hostile_code_costs_little_and_raises_nothing(profile, shape):
    started = time.process_time()
    check(NESTED[shape], profile=profile)
    assert time.process_time() - started < 5


SIGNS = ["\n", " ", "    ", "\t", "\0", "\ud800", "\x0c"]
WORDS = words("import from os io . ( ) = x ' \" f' { } ~ / .csv : é lambda def class match case with as * ** \\")


@given(
    st.text() | st.lists(st.sampled_from(WORDS + SIGNS), max_size=30).map("".join),
    st.sampled_from(["strict", "advise"]),
)
def test_any_text_has_findings_that_can_be_written(code, profile):
    for finding in check(code, profile=profile):
        assert finding.line >= 1
        assert finding.column >= 1
        str(finding).encode()


def test_escapes_that_mean_nothing_are_no_error_and_warn_nobody():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check(r"x = '\d'") == ()


@pytest.mark.skipif(not HUMANEVAL.is_file(), reason="../shared/vectors is missing")
def test_the_seed_refuses_three_of_humaneval_and_advice_says_nothing_of_it():
    refused = {}
    for line in gzip.decompress(HUMANEVAL.read_bytes()).splitlines():
        task = json.loads(line)
        code = task["prompt"] + task["canonical_solution"]
        assert check(code) == ()
        for finding in check(code, profile="strict"):
            refused[task["task_id"]] = (finding.rule, finding.name, finding.listed)
    assert refused == {
        "HumanEval/70": ("attribute", "remove", "original"),
        "HumanEval/144": ("path", "/", "original"),
        "HumanEval/160": ("builtin", "eval", "original"),
    }
