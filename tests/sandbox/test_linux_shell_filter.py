"""A shell's command under its filter and Landlock, as the container tier has it: it works, and stays where it is."""

import os
import subprocess
import sys

import pytest
from contained import SOURCE, needs_linux

from ferrule.sandbox.linux.landlock import read_abi

pytestmark = needs_linux

_PROGRAM = """
import json, os, sys
sys.path.append(sys.argv[1])
from ferrule.sandbox.linux.landlock import EXECUTE, READ, WRITE, WRITE_FILE, Ruleset, read_abi
from ferrule.sandbox.linux.seccomp import attach, set_no_new_privileges
from ferrule.sandbox.linux.shell_filter import make_shell_filter
if sys.argv[3] == "contained":
    set_no_new_privileges()
    rules = Ruleset(read_abi())
    rules.grant("/", READ | EXECUTE)
    rules.grant("/dev/null", READ | WRITE_FILE)
    rules.grant(sys.argv[2], READ | WRITE | EXECUTE)
    rules.restrict()
    attach(make_shell_filter(False, namespaced=False))
os.chdir(sys.argv[2])
os.execv("/bin/sh", ["sh", "-c", sys.argv[4]])
"""


def command(text, folder, contained="contained"):
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, SOURCE, folder, contained, text],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_ordinary_commands_work(tmp_path):
    text = "mkdir a && echo text > a/f && (cat a/f | tr t T) && mv a/f g && nice -n 1 cat g && rm -r a && ls"
    assert command(text, tmp_path) == (0, "TexT\ntext\ng\n")


# Each ends with status 0 where nothing contains it.
OUTSIDE = {
    "write": "echo changed > {outside}/file",
    "remove": "rm -f {outside}/gone",
    "mode": "chmod 600 {outside}/file",
    "times": "touch -d 2001-01-01 {outside}/file",
    "signal": "kill -0 {parent}",
    "network": "{python} -c 'import socket; socket.socket()'",
    "unix socket": "{python} -c 'import socket; socket.socket(socket.AF_UNIX)'",
    "limits of another": "{python} -c 'import resource; resource.prlimit({parent}, resource.RLIMIT_NOFILE)'",
    "user namespace": "unshare -U true",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_it_stays_in_its_folder(name, tmp_path):
    if name == "signal" and read_abi() < 6:
        pytest.skip("Landlock keeps signals in from its sixth ABI on")
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "file").write_text("whole")
    (outside / "gone").write_text("")
    text = OUTSIDE[name].format(outside=outside, parent=os.getpid(), python=sys.executable)
    before = (outside / "file").stat()
    assert command(text, inside)[0] != 0
    assert (outside / "file").stat() == before
    assert (outside / "gone").exists()
    assert command(text, inside, "plain")[0] == 0


def test_the_answer_of_a_refused_call_is_an_errno(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import os\ntry: os.chmod('.', 0o700)\nexcept OSError as error: print(error.errno)")
    assert command(f"{sys.executable} {program}", tmp_path) == (0, "1\n")
