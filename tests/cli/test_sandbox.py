"""`ferrule sandbox`: code run contained from the command line, looked at, and what the machine can contain."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from terminals import Terminal, assert_refused, environment, ferrule

from ferrule.cli.sandbox_run import split_cells


def code(folder: Path, text: str, name: str = "code.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_run_prints_what_the_code_prints_and_its_value(tmp_path: Path) -> None:
    done = ferrule("sandbox", "run", code(tmp_path, "print('hello')\nsum(range(101))"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n5050\n", "")


def test_run_reads_code_from_standard_input() -> None:
    done = ferrule("sandbox", "run", "-", typed="'é' * 3")
    assert (done.returncode, done.stdout) == (0, "ééé\n")


def test_code_that_fails_has_a_trimmed_traceback_and_status_1(tmp_path: Path) -> None:
    done = ferrule("sandbox", "run", code(tmp_path, "print('before')\n1 / 0"))
    assert (done.returncode, done.stdout) == (1, "before\n")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert "line 2" in done.stderr
    assert "zygote" not in done.stderr


def test_a_syntax_error_is_the_codes_failure(tmp_path: Path) -> None:
    done = ferrule("sandbox", "run", code(tmp_path, "print('a'"))
    assert done.returncode == 1
    assert "'(' was never closed" in done.stderr


def test_refused_is_told_apart_from_failed(tmp_path: Path) -> None:
    done = ferrule("sandbox", "run", code(tmp_path, "[1].remove(1)"), "--checks", "strict")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("refused:\nline 1, column 5: the attribute remove is not allowed")


def test_time_is_limited() -> None:
    done = ferrule("sandbox", "run", "-", "--timeout", "0.5", typed="print('begun', flush=True)\nwhile True: pass")
    assert (done.returncode, done.stdout) == (1, "begun\n")
    assert done.stderr != ""


def test_memory_is_limited() -> None:
    done = ferrule("sandbox", "run", "-", "--memory", "64", typed="len(bytearray(10**9))")
    assert done.returncode == 1
    assert "emory" in done.stderr


def test_inputs_come_as_files_and_what_is_left_goes_out(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    program = code(
        tmp_path,
        "text = open('in.csv').read()\nopen('out/copy.csv', 'w') if 0 else None\nopen('b.txt', 'w').write(text)",
    )
    out = tmp_path / "results"
    done = ferrule("sandbox", "run", program, "--input", f"in.csv={tmp_path / 'data.csv'}", "--out", out)
    assert done.returncode == 0, done.stderr
    assert (out / "b.txt").read_text() == "a,b\n1,2\n"
    assert str(out / "b.txt") in done.stdout
    told = ferrule("sandbox", "run", program, "--input", f"in.csv={tmp_path / 'data.csv'}")
    assert "[b.txt, 8 bytes]; --out FOLDER writes it" in told.stdout


def test_images_are_written_by_their_hash(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    program = code(tmp_path, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.gcf()")
    done = ferrule("sandbox", "run", program, "--out", tmp_path / "out")
    [image] = (tmp_path / "out").iterdir()
    assert image.read_bytes().startswith(b"\x89PNG")
    assert done.stdout.strip().endswith(str(image))


def test_all_of_a_run_as_json(tmp_path: Path) -> None:
    program = code(tmp_path, "import socket\nprint('a')\n{'x': (1, 2.5)}")
    told = json.loads(ferrule("sandbox", "run", program, "--json").stdout)
    assert (told["value"], told["stdout"], told["stderr"], told["error"]) == ({"x": [1, 2.5]}, "a\n", "", None)
    assert [one["name"] for one in told["findings"]] == ["socket"]
    assert told["usage"]["wall"] > 0
    done = ferrule("sandbox", "run", "-", "--json", typed="1 / 0")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["kind"] == "exception"


def test_advice_is_told_on_stderr() -> None:
    done = ferrule("sandbox", "run", "-", typed="import socket\n1")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr.startswith("advice: line 1, column 1: socket needs the network")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "no-such-file.py"], ["no-such-file.py"]),
        (["run", "-", "--timeout", "0"], ["timeout"]),
        (["run", "-", "--memory", "1"], ["memory"]),
        (["run", "-", "--input", "data.csv"], ["--input must be NAME=FILE"]),
        (["run", "-", "--input", "a.csv=no-such-file"], ["no-such-file"]),
        (["run", "-", "--input", "../a.csv=code.py"], ["../a.csv"]),
        (["run", "-", "--checks", "strictest"], ["--checks is one of strict, advise, off"]),
        (["check", "-", "--checks", "strictest"], ["--checks is one of strict, advise, off"]),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments: list[str], words: list[str], tmp_path: Path) -> None:
    code(tmp_path, "1")
    assert_refused(ferrule("sandbox", *arguments, typed="1", folder=tmp_path), *words)


def test_code_that_is_no_text_is_bad_input() -> None:
    assert_refused(ferrule("sandbox", "run", "-", typed=b"x = '\xff'"), "not UTF-8 text")
    assert_refused(ferrule("sandbox", "run", "-", typed=b"x = '\x00'"), "null byte")


def test_a_session_shares_variables_between_split_cells() -> None:
    typed = "x = 6\n\ndef twice(n):\n    return 2 * n\n\ntwice(x)\n1 / 0\nx\n"
    done = ferrule("sandbox", "run", "--session", typed=typed)
    assert (done.returncode, done.stdout) == (0, "12\n6\n")
    assert "ZeroDivisionError" in done.stderr
    assert ferrule("sandbox", "run", "--session", typed="1\n1 / 0\n").returncode == 1


def test_a_session_begins_with_a_file(tmp_path: Path) -> None:
    program = code(tmp_path, "x = 1\nif x:\n    x = 2\nx")
    done = ferrule("sandbox", "run", program, "--session", "--json", typed="x + 1\n")
    assert [json.loads(line)["value"] for line in done.stdout.splitlines()] == [2, 3]


def test_a_session_on_a_terminal() -> None:
    with Terminal("sandbox", "run", "--session") as terminal:
        terminal.expect("› ")
        terminal.type("x = 40\r")
        terminal.expect("› ")
        terminal.type("print('\\x1b[31mred')\r")
        terminal.expect("\\x1b[31mred")
        terminal.expect("› ")
        terminal.type("while True: pass\r\r")
        time.sleep(1)
        terminal.type("\x03")
        terminal.expect("interrupted")
        terminal.type("x + 2\r")
        terminal.expect("42")
        terminal.expect("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0


def test_lines_become_cells_as_at_pythons_own_prompt() -> None:
    assert list(split_cells(["", "x = 1", "", "for i in x:", "    a", "", "y = (", "1,", ")", "if :"])) == [
        "x = 1",
        "for i in x:\n    a\n",
        "y = (\n1,\n)",
        "if :",
    ]
    assert list(split_cells(["def f():", "    return 1"])) == ["def f():\n    return 1"]
    assert list(split_cells(["x = '''a", "", "b'''"])) == ["x = '''a\n\nb'''"]


def test_check_looks_without_running(tmp_path: Path) -> None:
    program = code(tmp_path, "import requests\nopen('/tmp/never', 'w')\n")
    done = ferrule("sandbox", "check", program)
    assert done.returncode == 0
    assert done.stdout.startswith("line 1, column 1: requests needs the network, and the sandbox has none; ")
    strict = ferrule("sandbox", "check", program, "--checks", "strict", "--json")
    assert strict.returncode == 1
    assert [(one["rule"], one["listed"]) for one in json.loads(strict.stdout)] == [
        ("module", "added"),
        ("builtin", "original"),
        ("path", "original"),
    ]
    assert ferrule("sandbox", "check", "-", typed="x = 1").stdout == ""
    assert ferrule("sandbox", "check", "-", typed="x = (").returncode == 1


def test_doctor_tells_the_tier_and_what_the_canaries_reached() -> None:
    done = ferrule("sandbox", "doctor")
    told = json.loads(ferrule("sandbox", "doctor", "--json").stdout)
    assert done.returncode == int(not told["holds"])
    assert done.stdout.startswith(f"tier: {told['tier']}\n")
    assert told["holds"], told
    assert {one["reached"] for one in told["canaries"]} == {None}
    assert f"python: holds, 0 of {len(told['canaries'])} canaries got out\n" in done.stdout
    assert f"\nshell: {told['shell_tier']}, holds\n    passes in a repository: change a file" in done.stdout
    assert ("refused there" in done.stdout) == bool(told["shell_refuses"]) == (told["shell_tier"] == "container")
    for promise, layers in told["promised"].items():
        assert f"    {promise} ({layers})\n" in done.stdout
    assert told["not_promised"][0] in done.stdout


_REFUSING = f"""
import errno, os, sys
sys.path.append({str(Path(__file__).parents[1] / "sandbox")!r})
from escaping.container_filter import install
from ferrule.sandbox.linux.bpf import ALLOW, assemble, refuse
from ferrule.sandbox.linux.syscall_numbers import AUDIT_ARCH, MACHINE, NUMBERS
from ferrule.sandbox.linux.seccomp import attach, set_no_new_privileges

if sys.argv[1] == "namespaces":
    install()
else:
    set_no_new_privileges()
    refused = {{NUMBERS["landlock_create_ruleset"]: refuse(errno.ENOSYS)}}
    attach(assemble(refused, ALLOW, architecture=AUDIT_ARCH[MACHINE]))
os.execv(sys.executable, [sys.executable, "-m", "ferrule", *sys.argv[2:]])
"""


def ferrule_without(layer: str, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """The command where the kernel refuses what a layer needs, as containers and old kernels do."""
    command = [sys.executable, "-c", _REFUSING, layer, *arguments]
    return subprocess.run(command, input=typed, capture_output=True, text=True, env=environment(), check=False)


def test_a_container_has_a_tier_of_its_own() -> None:
    told = json.loads(ferrule_without("namespaces", "sandbox", "doctor", "--json").stdout)
    assert (told["tier"], told["namespaces"], told["holds"]) == ("container", False, True)
    assert told["missing"][0].startswith("namespaces: ")
    assert told["shell_tier"] == "container"
    assert any("`mkdir`" in names for names in told["shell_refuses"].values())
    done = ferrule_without("namespaces", "sandbox", "run", "-", typed="6 * 7")
    assert (done.returncode, done.stdout) == (0, "42\n")


def test_where_nothing_contains_nothing_runs() -> None:
    done = ferrule_without("landlock", "sandbox", "doctor")
    assert done.returncode == 1
    assert done.stdout.startswith("tier: none\n")
    assert "promised: nothing, and so nothing runs\n" in done.stdout
    assert "missing: landlock" in done.stdout.lower()
    refused = ferrule_without("landlock", "sandbox", "run", "-", typed="print('ran')")
    assert_refused(refused, "andlock")


def test_the_contained_tools_are_offered_where_they_are_named(tmp_path: Path) -> None:
    called = ferrule("call", "--tools", "python", "--yes", "python", "--code", "sum(range(10))", folder=tmp_path)
    assert (called.returncode, called.stdout) == (0, "45\n"), called.stderr
    called = ferrule(
        "call", "--tools", "shell", "--yes", "shell", "--command", "echo made > it; cat it", folder=tmp_path
    )
    assert (called.returncode, called.stdout, (tmp_path / "it").read_text()) == (0, "made\n", "made\n"), called.stderr
    listed = ferrule("tools", "python", "shell", folder=tmp_path).stdout
    assert "\npython  (from code, reads only" in listed
    assert "\nshell  (from code, writes" in listed
