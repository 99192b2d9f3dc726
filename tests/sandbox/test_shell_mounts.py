"""The full tier's mounts on a machine that has mounts of its own, and where they can't be made.

Each program here first enters namespaces in which it may mount, so the mounts that the sandbox finds were made by
somebody more privileged than it is, as those of a machine are for an ordinary user.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from contained import SOURCE, TESTS

from ferrule.sandbox.doctor import detect_layers
from ferrule.sandbox.linux.mounts import open_path
from ferrule.sandbox.tiers import Tier

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's"),
    pytest.mark.skipif(
        detect_layers().shell_tier is not Tier.FULL, reason=f"this machine has no full tier: {detect_layers().missing}"
    ),
]

BEGIN = """
import asyncio, os, sys
sys.path[:0] = [{source!r}, {tests!r}]
from ferrule.sandbox.doctor import detect_layers
from ferrule.sandbox.linux import syscalls
from ferrule.sandbox.linux.identity import enter_same_user_namespace
from ferrule.sandbox.linux.mounts import make_private
from ferrule.sandbox.shell import ShellSandbox

def mount(place, flags=0, options=""):
    os.makedirs(place, exist_ok=True)
    syscalls.call("mount", b"tmpfs", place.encode(), b"tmpfs", flags, options.encode())

def in_namespaces():
    detect_layers()
    enter_same_user_namespace(syscalls.CLONE_NEWNS)
    make_private()

async def say(command, **settings):
    writable = settings.pop("writable", ())
    async with ShellSandbox("workspace", tier="full", **settings) as shell:
        print((await shell.run(command, writable=writable)).output, end="")
"""


def said(folder: Path, program: str) -> str:
    """What a program prints that runs in a folder."""
    script = BEGIN.format(source=SOURCE, tests=TESTS) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=300)
    return done.stdout + done.stderr


def test_mounts_within_the_workspace_and_outside_keep_what_they_allow(tmp_path: Path) -> None:
    shown = said(
        tmp_path,
        """
        in_namespaces()
        mount("workspace/open")
        mount("workspace/kept", flags=1)  # read-only
        mount("workspace/plain", flags=8)  # without programs
        mount("outside/deep")
        open("outside/deep/file", "w").write("seen")
        open("workspace/open/.env", "w").write("secret")
        open("workspace/plain/program", "w").write("#!/bin/sh\\necho executed")
        os.chmod("workspace/plain/program", 0o755)
        asyncio.run(say('''
            echo written >open/file && cat open/file
            echo lost >kept/file; echo lost >../outside/deep/new; cat ../outside/deep/file
            cat open/.env; plain/program; mv open other; ls ../outside/deep open
        ''', readable=["."]))
        print(sorted(os.listdir("workspace/kept") + os.listdir("outside/deep")))
        """,
    )
    assert "written\n" in shown
    assert "seen" in shown
    assert "executed" not in shown
    assert "secret" not in shown
    assert shown.count("Read-only file system") == 2
    assert shown.endswith("['file']\n")


def test_what_appears_beside_a_mount_is_covered_with_what_is_in_it(tmp_path: Path) -> None:
    shown = said(
        tmp_path,
        """
        async def main():
            async with ShellSandbox("workspace", tier="full") as shell:
                await shell.run("true")
                os.rename("workspace/inner/made", "workspace/inner/.git")
                print((await shell.run("cat inner/.git/objects/one; echo x >inner/.git/objects/two")).output)
        in_namespaces()
        mount("workspace/inner/made/objects")
        open("workspace/inner/made/objects/one", "w").write("an object")
        asyncio.run(main())
        """,
    )
    assert "an object" in shown
    assert "Read-only" in shown


def test_a_folder_of_the_machine_may_be_a_link(tmp_path: Path) -> None:
    """`/var/tmp` leads to another folder, which then is the command's own; the machine's has nothing of it."""
    shown = said(
        tmp_path,
        """
        os.mkdir("workspace")
        in_namespaces()
        mount("/var")
        os.mkdir("/var/elsewhere")
        os.symlink("elsewhere", "/var/tmp")
        open("/var/elsewhere/file", "w").write("the machine's")
        asyncio.run(say("cat /var/tmp/file 2>/dev/null; echo own >/var/tmp/mine && cat /tmp/mine /var/elsewhere/mine"))
        print(os.listdir("/var/elsewhere"))
        """,
    )
    assert shown == "own\nown\n['file']\n"


def test_a_link_planted_among_temporary_files_is_no_way_out(tmp_path: Path) -> None:
    """The workspace lies below `/tmp`, which commands write: one puts a link on the way to it, and a stage is made."""
    folder = Path("/tmp", f"ferrule-test-{os.getpid()}")
    shown = said(
        tmp_path,
        f"""
        in_namespaces()
        mount("/tmp")
        os.makedirs("{folder}/workspace/.git")
        os.makedirs("/tmp/victim/workspace")
        os.chdir("{folder}")
        async def main():
            async with ShellSandbox("workspace", tier="full") as shell:
                plant = "mv {folder} /tmp/moved && ln -s /usr {folder}; readlink {folder}; cd /; ls {folder} | head -1"
                print((await shell.run(plant)).output)
                print((await shell.run("pwd; echo x >.git/file && echo given", writable=[".git"])).output)
        asyncio.run(main())
        """,
    )
    assert "/usr\nbin\n" in shown
    assert f"{folder}/workspace\ngiven" in shown


def test_where_namespaces_are_refused_the_reason_is_told(tmp_path: Path) -> None:
    shown = said(
        tmp_path,
        """
        from escaping.container_filter import install
        os.mkdir("workspace")
        detect_layers()  # what held when it was tried may hold no more
        install()
        asyncio.run(say("true"))
        """,
    )
    assert "SandboxUnavailable: the launcher of shell commands did not start" in shown
    assert "unshare: Operation not permitted" in shown


def test_where_parts_of_proc_are_covered_commands_have_the_container_tier_and_doctor_says_so(tmp_path: Path) -> None:
    """As most containers cover them, so that none of their namespaces may have a /proc of its own."""
    shown = said(
        tmp_path,
        """
        from ferrule.cli.sandbox_doctor import print_report
        enter_same_user_namespace(syscalls.CLONE_NEWNS)
        make_private()
        mounts = [line.split() for line in open("/proc/self/mountinfo")]
        for _, _, _, _, place, *options in mounts:  # one whole /proc, wherever it is, is enough for another
            if options[options.index("-") + 1] == "proc":
                mount(f"{place}/tty")
        os.mkdir("workspace")
        assert print_report(as_json=False) == 0
        async def main():
            async with ShellSandbox("workspace") as shell:
                print((await shell.run("echo ran")).output, end="")
        asyncio.run(main())
        """,
    )
    assert shown.startswith("tier: full\n")
    assert "namespaces of shell commands: no\n" in shown
    assert "missing: namespaces of shell commands: [Errno 1] fsmount: Operation not permitted; " in shown
    assert "\nshell: container, holds\n" in shown
    assert "refused there, since nothing can be created" in shown
    assert shown.endswith("ran\n")


def test_no_part_of_a_path_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("folder")
    os.close(open_path(f"{tmp_path}/folder/inner"))
    for path in ("link", "link/inner"):
        with pytest.raises(OSError, match="openat2") as found:
            open_path(f"{tmp_path}/{path}")
        assert found.value.errno == errno.ELOOP
