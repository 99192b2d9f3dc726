"""`PythonSandbox` end to end: what runs, what comes back, what is refused, and what each ending is called."""

import asyncio
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.python import DataTable, Opaque, PythonResult, PythonSandbox
from ferrule.sandbox.python.parent.request import MAX_CODE


@pytest.fixture(scope="module")
def sandbox() -> Iterator[PythonSandbox]:
    """One sandbox for all tests, each of which has an event loop of its own."""
    sandbox = PythonSandbox()
    yield sandbox
    sandbox.close()


async def test_the_value_is_that_of_the_last_expression(sandbox: PythonSandbox) -> None:
    assert (await sandbox.run("x = 20\nx * 2 + 2")).value == 42
    assert (await sandbox.run("x = 20")).value is None
    assert (await sandbox.run("")).value is None
    assert (await sandbox.run("'only a text'")).value == "only a text"
    assert (await sandbox.run("import asyncio\nawait asyncio.sleep(0, 'awaited')")).value == "awaited"


async def test_code_in_the_style_of_humaneval(sandbox: PythonSandbox) -> None:
    code = "from typing import List\n\ndef add(a: int, b: int) -> int:\n    return a + b\n\n"
    code += "def check(candidate):\n    assert candidate(1, 2) == {}\n\ncheck(add)\n"
    assert (await sandbox.run(code.format(3))).is_ok
    failed = (await sandbox.run(code.format(4))).error
    assert failed is not None
    assert (failed.kind, failed.message, failed.line) == ("exception", "AssertionError", 7)


async def test_a_script_sees_itself_as_main(sandbox: PythonSandbox) -> None:
    code = (
        "import sys, pickle\nclass A: pass\nif __name__ == '__main__':\n    print(A, sys.modules['__main__'].A is A)\n"
    )
    assert (await sandbox.run(code + "type(pickle.loads(pickle.dumps(A()))) is A")).value is True


async def test_output_is_kept_apart_and_decoded(sandbox: PythonSandbox) -> None:
    code = (
        "import sys, os\nprint('ü', end='')\nprint('é', file=sys.stderr)\nos.write(1, b'\\xff')\nsys.stdout.write('x')"
    )
    run = await sandbox.run(code)
    assert sorted(run.stdout) == sorted("ü\ufffdx")
    assert run.stderr == "é\n"
    assert (await sandbox.run("print('\\ud800')")).stdout == "\\ud800\n"
    assert (await sandbox.run("import sys; sys.stdout.write('no newline')")).stdout == "no newline"


async def test_standard_input_is_empty(sandbox: PythonSandbox) -> None:
    assert (await sandbox.run("import sys; sys.stdin.read()")).value == ""
    error = (await sandbox.run("input('? ')")).error
    assert error is not None
    assert error.message.startswith("EOFError")


async def test_tracebacks_show_the_code_and_nothing_of_ours(sandbox: PythonSandbox) -> None:
    code = "def half(x):\n    return 1 / x\n\ndef outer():\n    try:\n        half(0)\n"
    code += "    except ZeroDivisionError as error:\n        raise ValueError('outer') from error\n\nouter()\n"
    error = (await sandbox.run(code)).error
    assert error is not None
    assert (error.kind, error.message, error.line) == ("exception", "ValueError: outer", 8)
    assert "return 1 / x" in error.traceback
    assert "direct cause" in error.traceback
    assert "ferrule" not in error.traceback
    inside = (await sandbox.run("import json\njson.loads('{')")).error
    assert inside is not None
    assert inside.line == 2
    assert "decoder.py" not in inside.traceback
    group = (await sandbox.run("raise ExceptionGroup('g', [ValueError('a'), TypeError('b')])")).error
    assert group is not None
    assert "TypeError: b" in group.traceback


@pytest.mark.parametrize(
    ("code", "kind", "message", "line"),
    [
        ("x = 1\ndef f(:\n    pass", "syntax", "SyntaxError: invalid syntax", 2),
        ("if True:\nx = 1", "syntax", "IndentationError", 2),
        ("return 5", "syntax", "SyntaxError: 'return' outside function", 1),
        ("import ast\n\nast.parse('(')", "exception", "SyntaxError", 3),
        ("\n\nundefined", "exception", "NameError: name 'undefined' is not defined", 3),
        ("raise SystemExit('bye')", "exception", "SystemExit: bye", 1),
        ("raise KeyboardInterrupt", "exception", "KeyboardInterrupt", 1),
        ("x = 'a' * 10**11", "memory", "MemoryError", 1),
        ("import numpy\nnumpy.ones(10**10)", "memory", "Unable to allocate", 2),
        ("def f(): f()\nf()", "exception", "RecursionError", 1),
        ("import os\nos._exit(7)", "killed", "status 7", None),
        ("import os\nos._exit(0)", "killed", "status 0", None),
        ("import ctypes\nctypes.string_at(0)", "killed", "SIGSEGV", None),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "exception", "E: <exception str", 3),
    ],
)
async def test_what_goes_wrong_has_a_kind(
    sandbox: PythonSandbox, code: str, kind: str, message: str, line: int | None
) -> None:
    error = (await sandbox.run(code)).error
    assert error is not None
    assert (error.kind, error.line) == (kind, line)
    assert message in error.message


async def test_leaving_with_success_is_no_error(sandbox: PythonSandbox) -> None:
    for code in ("import sys; sys.exit()", "raise SystemExit(0)", "exit(0)"):
        assert (await sandbox.run(code)).is_ok


async def test_a_timeout_lands_on_time_and_keeps_what_was_printed(sandbox: PythonSandbox) -> None:
    code = "import signal\nfor s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n"
    code += "    except (OSError, ValueError): pass\n"
    code += "print('begun')\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass"
    begin = time.monotonic()
    run = await sandbox.run(code, timeout=0.5)
    took = time.monotonic() - begin
    assert run.error is not None
    assert (run.error.kind, run.stdout) == ("timeout", "begun\n")
    assert 0.5 <= run.usage.wall < 0.7
    assert took < 1.5
    assert run.usage.cpu > 0.02


async def test_output_is_cut_at_the_limit(sandbox: PythonSandbox) -> None:
    run = await sandbox.run("while True: print('x' * 1000)")
    assert run.error is not None
    assert run.error.kind == "output"
    assert len(run.stdout) == 1024 * 1024
    both = await sandbox.run("import sys\nwhile True:\n    print('o' * 99)\n    print('e' * 99, file=sys.stderr)")
    assert len(both.stdout) + len(both.stderr) == 1024 * 1024
    assert min(len(both.stdout), len(both.stderr)) > 1000


async def test_inputs_are_variables_and_files(sandbox: PythonSandbox, tmp_path: Path) -> None:
    (tmp_path / "host.txt").write_text("from the host")
    frame = pd.DataFrame(
        {"n": [1, 2], "x": [0.5, math.nan], "s": ["a", None], "d": pd.to_datetime(["2020-01-01", "2021-01-01"])},
        index=pd.Index(["r1", "r2"], name="rows"),
    )
    inputs = {
        "x": [1, {"a": (2, 3)}, {4}],
        "frame": frame,
        "series": pd.Series([1.5, 2.5], name="s"),
        "array": np.arange(6).reshape(2, 3),
        "blob": b"\x00\xff",
        "data.csv": b"a,b\n1,2\n",
        "sub/text.txt": "ü",
        "host.txt": tmp_path / "host.txt",
    }
    code = (
        "import pandas as pd\n(x, frame.shape, frame.index.name, str(frame.dtypes['n']), frame['d'].dt.year.tolist(),"
    )
    code += "frame['x'].isna().tolist(), series.name, float(series.sum()), array.shape, blob,"
    code += "pd.read_csv('data.csv')['b'].tolist(), open('sub/text.txt').read(), open('host.txt').read())"
    run = await sandbox.run(code, inputs)
    assert run.error is None
    assert run.value == (
        *([1, {"a": (2, 3)}, {4}], (2, 4), "rows", "int64", [2020, 2021], [False, True], "s", 4.0, (2, 3)),
        *(b"\x00\xff", [2], "ü", "from the host"),
    )
    assert run.files == {}


async def test_values_of_libraries_come_back(sandbox: PythonSandbox) -> None:
    assert (await sandbox.run("import numpy as np\nnp.arange(3)")).value.tolist() == [0, 1, 2]
    table = (await sandbox.run("import pandas as pd\npd.DataFrame({'a': range(3000)})")).value
    assert isinstance(table, DataTable)
    assert (table.total_rows, len(table.rows)) == (3000, 1000)
    run = await sandbox.run("{'a': [1, 2, 3, object()]}")
    assert isinstance(run.value["a"][3], Opaque)
    assert run.omitted == ("value['a'][3]: object as its repr",)


async def test_figures_come_back_as_png(sandbox: PythonSandbox) -> None:
    code = (
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nfig, ax = plt.subplots()\nax.bar([1], [2])\nfig"
    )
    run = await sandbox.run(code, timeout=60)
    assert run.error is None, run.error
    assert run.stderr == ""
    assert len(run.images) == 2
    assert run.value.data.startswith(b"\x89PNG")
    assert run.files == {}


async def test_files_come_back(sandbox: PythonSandbox) -> None:
    code = "import os, tempfile\nopen('new.txt', 'w').write('new')\nos.makedirs('a/b')\n"
    code += "open('a/b/c', 'wb').write(bytes(3))\n"
    code += (
        "open('given.txt', 'a').write('!')\nos.symlink('/etc/passwd', 'link')\ntempfile.mkstemp()\nos.mkdir('empty')\n"
    )
    code += "open('line\\nbreak', 'w').close()"
    run = await sandbox.run(code, {"given.txt": "given", "same.txt": "same"})
    assert run.error is None, run.error
    assert run.files == {"new.txt": b"new", "a/b/c": bytes(3), "given.txt": b"given!"}
    assert len(run.omitted) == 1
    failed = await sandbox.run("open('kept.txt', 'w').write('kept')\n1 / 0")
    assert failed.files == {"kept.txt": b"kept"}


async def test_files_can_be_copied(sandbox: PythonSandbox) -> None:
    # pathlib's own copy came with Python 3.14; it asks for shared blocks first, as the second way does everywhere.
    code = "import errno, fcntl, pathlib, shutil\na = pathlib.Path('a.txt')\na.write_text('x')\n"
    code += "getattr(a, 'copy', lambda to: shutil.copy(a, to))('b.txt')\n"
    code += "with open('a.txt') as source, open('c.txt', 'w') as target:\n    try:\n"
    code += "        fcntl.ioctl(target.fileno(), 0x40049409, source.fileno())\n"
    code += "    except OSError as error:\n        said = error.errno == errno.EOPNOTSUPP\n"
    code += "pathlib.Path('b.txt').read_text(), said"
    run = await sandbox.run(code)
    assert (run.value, run.error) == (("x", True), None)


async def test_files_beyond_the_limits_are_named(sandbox: PythonSandbox) -> None:
    run = await sandbox.run("for i in range(300): open(f'{i:03}.txt', 'w').close()")
    assert len(run.files) == 256
    assert run.omitted == ("files: only the first 256 are here",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"code": b"1"}, "code must be text, not bytes"),
        ({"code": None}, "code must be text, not NoneType"),
        ({"code": "x = 1\0"}, "null byte at character 5"),
        ({"code": "x" * 10_000_000}, f"at most {MAX_CODE}"),
        ({"code": "'\ud800'"}, "a lone surrogate at character 1"),
        ({"timeout": 0}, "more than 0"),
        ({"timeout": -1}, "more than 0"),
        ({"timeout": math.nan}, "a number of seconds"),
        ({"timeout": math.inf}, "a number of seconds"),
        ({"timeout": "1"}, "a number of seconds"),
        ({"timeout": True}, "a number of seconds"),
        ({"memory": 1000}, "Python needs"),
        ({"memory": -1}, "Python needs"),
        ({"memory": 1.5}, "a whole number of bytes"),
        ({"inputs": [1]}, "mapping of names to values, not list"),
        ({"inputs": {1: 2}}, "must be text, not 1"),
        ({"inputs": {"x": [1, object()]}}, r"x\[1\]: object as its repr"),
        ({"inputs": {"../up": b""}}, "neither a variable's name nor a file's relative path"),
        ({"inputs": {"/etc/x": b""}}, "neither a variable's name nor a file's relative path"),
        ({"inputs": {"class": 5}}, "a file must be bytes, text or a Path, not int"),
        ({"inputs": {"a.txt": Path("/does/not/exist")}}, "No such file"),
        ({"inputs": {"x": b"x" * (33 << 20)}}, "over what is left of the limit"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",  # not the inputs: one has an address, one 33 MB
)
async def test_bad_input_is_refused_before_anything_runs(sandbox: PythonSandbox, given: dict, said: str) -> None:
    with pytest.raises(SandboxInputError, match=said):
        await sandbox.run(**{"code": "1", **given})


async def test_runs_are_fresh(sandbox: PythonSandbox) -> None:
    await sandbox.run(
        "import builtins, json\nbuiltins.print = None\njson.loads = None\nleft = 1\nopen('left.txt', 'w').close()"
    )
    code = "import json, os\nprint(json.loads('1'))\n('left' in globals(), os.listdir('.'))"
    assert (await sandbox.run(code)).value == (False, [".private"])


async def test_each_run_has_randomness_of_its_own(sandbox: PythonSandbox) -> None:
    code = "import random, numpy, uuid\n(random.random(), float(numpy.random.rand()), str(uuid.uuid4()))"
    runs = await asyncio.gather(*(sandbox.run(code) for _ in range(5)))
    for values in zip(*(run.value for run in runs), strict=True):
        assert len(set(values)) == 5


async def test_threads_are_waited_for(sandbox: PythonSandbox) -> None:
    code = "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start()"
    assert (await sandbox.run(code)).stdout == "late\n"


async def test_usage(sandbox: PythonSandbox) -> None:
    run = await sandbox.run("x = bytearray(100_000_000)\nsum(range(3_000_000))")
    assert 0 < run.usage.cpu < 30
    assert run.usage.wall > 0
    assert run.usage.peak_memory > 100_000_000


async def test_the_environment_is_bare(sandbox: PythonSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    async with PythonSandbox(packages=()) as fresh:
        names = (await fresh.run("import os; dict(os.environ)")).value
    assert "hunter2" not in str(names)
    assert names["HOME"] == names["TMPDIR"]


async def test_checks_advise_or_refuse(sandbox: PythonSandbox) -> None:
    advised = await sandbox.run("import socket\n5")
    assert advised.value == 5
    strict = PythonSandbox(checks="strict")
    run = await strict.run("x = [1]\neval('x')")
    assert run.error is not None
    assert run.error.kind == "refused"
    assert run.findings
    await strict.aclose()
    with pytest.raises(ValueError, match="checks is one of"):
        PythonSandbox(checks="loose")  # type: ignore[arg-type]


async def test_a_result_that_lies_is_an_error_or_its_own_word(sandbox: PythonSandbox) -> None:
    header = "import os, struct\ndef say(head, tail=b'', size=None):\n"
    header += "    data = struct.pack('>II', len(head) if size is None else size, len(tail)) + head + tail\n"
    header += "    for fd in range(3, 64):\n        try: os.write(fd, data)\n        except OSError: pass\n"
    lies = {
        "say(b'{\"value\": 5}')": None,
        "say(b'[]')": "protocol",
        'say(b\'{"value": {"$": "object"}}\')': "protocol",
        "say(b'{}', size=2**31)": "protocol",
        'say(b\'{"error": {"kind": "lost", "message": "", "traceback": ""}}\')': "protocol",
        "say(b'\\xff' * 100)": "protocol",
        "say(b'{', size=100)\nos._exit(0)": "killed",
        "os.closerange(0, 100)": "killed",
        "os.closerange(0, 100)\nwhile True: pass": "killed",
    }
    for lie, kind in lies.items():
        run = await sandbox.run(header + lie, timeout=2)
        assert (run.error.kind if run.error else None) == kind, lie


async def test_a_sandbox_that_is_closed_says_so() -> None:
    sandbox = PythonSandbox(packages=())
    assert (await sandbox.run("1")).value == 1
    await sandbox.aclose()
    await sandbox.aclose()
    with pytest.raises(SandboxUnavailable, match="closed"):
        await sandbox.run("1")


async def test_a_package_that_is_not_installed_is_no_error() -> None:
    async with PythonSandbox(packages=("json", "surely_not_installed")) as sandbox:
        assert (await sandbox.run("1")).value == 1


async def test_declared_paths_are_readable(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("value = 'readable'")
    tmp_path.chmod(0o755)  # started as root, a run is another user
    async with PythonSandbox(packages=(), readable=[tmp_path]) as sandbox:
        code = f"import sys; sys.path.append({str(tmp_path)!r})\nimport module\nmodule.value"
        assert (await sandbox.run(code)).value == "readable"
    async with PythonSandbox(packages=()) as sandbox:
        assert not (await sandbox.run(code)).is_ok


async def test_no_tier_is_the_users_to_choose() -> None:
    async with PythonSandbox(packages=(), tier="none") as sandbox:
        run: PythonResult = await sandbox.run("open('a.txt', 'w').write('x')\n6 * 7")
        assert (run.value, run.files) == (42, {"a.txt": b"x"})


async def test_the_container_tier_leaves_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with PythonSandbox(packages=(), tier="container") as sandbox:
        assert sandbox.tier == "container"
        runs = [await sandbox.run(f"open('a.txt', 'w').write('{number}')\n{number}") for number in range(3)]
        assert [(run.value, run.files["a.txt"]) for run in runs] == [(0, b"0"), (1, b"1"), (2, b"2")]
        (folder,) = tmp_path.iterdir()
        await asyncio.sleep(0.5)
        assert len(list(folder.iterdir())) <= 1  # the spare's
    assert list(tmp_path.iterdir()) == []


async def test_what_was_found_at_the_start_is_told() -> None:
    sandbox = PythonSandbox(packages=("json", "surely_not_installed"))
    assert (sandbox.tier, sandbox.canary_results, len(sandbox.packages)) == (None, {}, 2)
    await sandbox.start()
    assert sandbox.packages == ("json",)
    assert set(sandbox.canary_results.values()) == {"stopped"}
    await sandbox.aclose()


async def test_a_start_that_fails_says_why() -> None:
    with pytest.raises(SandboxUnavailable, match="tier full: ValueError"):
        await PythonSandbox(packages=(), readable=["/"]).start()


@pytest.mark.parametrize("given", [{"max_output": 0}, {"parallel": 0}, {"memory": 5}])
def test_settings_that_can_not_be(given: dict) -> None:
    with pytest.raises(SandboxInputError):
        PythonSandbox(**given)
