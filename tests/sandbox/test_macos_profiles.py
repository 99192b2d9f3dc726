"""Profiles as text and as decisions: well-formed whatever files are called, and each path decided as it should be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seatbelt import allows, expressions, unconditional

from ferrule.sandbox.macos.profiles import make_python_profile, make_shell_profile
from ferrule.sandbox.macos.sbpl import Profile, ProfileBuilder
from tables import each_case

HOSTILE = (
    *(
        '/a "quoted" name',
        "/back\\slash",
        "/new\nline",
        "/(allow default)",
        '/") (allow default) ("',
        "/ünï/日本",
        "/;x",
    ),
    *("/a=b", "/tab\there", "/#|x", "/-D", "/ "),
)
SCRATCH = "/private/var/folders/x/T/run"
LIBRARY = "/opt/python/lib"
PROGRAM = "/opt/python/bin/python3.11"
WORKSPACE = "/Users/me/work"


def of_python(readable: tuple[str, ...] = (LIBRARY,), scratch: str = SCRATCH) -> Profile:
    return make_python_profile(
        readable=readable, links=("/opt/link",), listed=("/src",), programs=(PROGRAM,), scratch=scratch
    )


def of_shell(mode: str = "workspace-write", *, network: bool | int = False, absent: tuple[str, ...] = ()) -> Profile:
    rules = {"/": "write" if mode == "full" else "read", WORKSPACE: "read" if mode == "read-only" else "write"}
    rules |= {f"{WORKSPACE}/.git": "read", f"{WORKSPACE}/inner/.git": "read", f"{WORKSPACE}/inner/.env": "hidden"}
    rules |= {"/Users/me/.ssh": "hidden", "/private/tmp": "hidden", "/private/var/folders": "hidden", "/dev": "hidden"}
    return make_shell_profile(rules=tuple(rules.items()), scratch=SCRATCH, absent=absent, network=network)


@each_case("name", HOSTILE)
def test_no_name_of_a_file_changes_the_text(name: str) -> None:
    plain, hostile = of_python(("/lib",), "/scratch"), of_python((f"/lib{name}",), f"/scratch{name}")
    # Folders above are named too, so the plain one gets as many.
    assert expressions(hostile.text)
    assert name not in hostile.text
    assert hostile.paths != plain.paths
    told = hostile.build_command(__file__, ["python"])
    parameters = dict(part.split("=", 1) for part in told if part.startswith("P") and "=" in part)
    assert [parameters[f"P{number}"] for number in range(len(hostile.paths))] == list(hostile.paths)
    assert f"/lib{name}" in hostile.paths
    assert allows(hostile, "file-read-data", f"/lib{name}/x")
    assert not allows(hostile, "file-read-data", "/elsewhere")


@given(
    st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1).map(
        lambda text: f"/w/{text}"
    )
)
def test_any_workspace_gives_a_profile_or_is_refused(path: str) -> None:
    if any(part in {".", ".."} for part in path.split("/")):
        with pytest.raises(ValueError, match="absolute and real"):
            make_shell_profile(rules=((path, "write"),), scratch="/s", network=False)
        return
    profile = make_shell_profile(rules=(("/", "read"), (path, "write")), scratch="/s", network=False)
    assert expressions(profile.text)[:2] == [["version", "1"], ["deny", "default"]]
    assert allows(profile, "file-write-data", path)
    assert not allows(profile, "file-write-data", "/w-other")


@pytest.mark.parametrize("path", ["relative", "/a/../b", "/a/./b", "/nul\0", ""])
def test_a_path_that_is_not_real_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="absolute and real"):
        ProfileBuilder().add_path_rule("allow file-read*", below=[path])


def test_a_rule_without_a_path_is_left_out() -> None:
    rules = ProfileBuilder()
    rules.add_path_rule("allow file-write*")
    assert rules.build() == Profile("(version 1)\n(deny default)", ())


def test_a_run_reads_its_view_and_writes_its_folder() -> None:
    profile = of_python()
    assert allows(profile, "file-read-data", f"{LIBRARY}/os.py")
    assert allows(profile, "file-read-data", "/usr/lib/dyld")
    assert allows(profile, "file-read-data", "/")
    assert allows(profile, "file-map-executable", f"{LIBRARY}/x.so")
    assert allows(profile, "file-read-data", "/src")
    for path in (
        "/src/secret",
        "/Users/me/.ssh/id",
        "/Users/me",
        "/private/etc/passwd",
        "/private/tmp/x",
        "/opt/other",
    ):
        assert not allows(profile, "file-read-data", path), path
        assert not allows(profile, "file-read-metadata", path), path
    assert allows(profile, "file-read-metadata", "/private/var/folders")
    assert not allows(profile, "file-read-data", "/private/var/folders")
    assert allows(profile, "file-write-create", f"{SCRATCH}/x")
    for path in (f"{LIBRARY}/os.py", f"{SCRATCH}-2/x", "/private/tmp/x", "/opt/link", "/dev/disk0", "/"):
        assert not allows(profile, "file-write-data", path), path
        assert not allows(profile, "file-write-create", path), path


def test_a_run_makes_no_process_and_no_connection() -> None:
    profile = of_python()
    assert allows(profile, "process-exec", PROGRAM)
    assert not allows(profile, "process-exec", "/bin/sh")
    assert not allows(profile, "process-exec", f"{SCRATCH}/program")
    # What isn't named at all is denied, and nothing that is dangerous is allowed without a filter.
    assert list(unconditional(profile)) == []
    told = [
        word for verb, *rest in expressions(profile.text) if verb == "allow" for word in rest if isinstance(word, str)
    ]
    for operation in ("process-fork", "network", "system-socket", "file-link", "appleevent", "ipc", "job", "iokit"):
        assert not [one for one in told if one.startswith(operation)], operation
    assert "(allow signal (target self))" in profile.text
    assert "kern.proc" not in profile.text


@pytest.mark.parametrize(
    ("mode", "written"),
    [
        ("read-only", {SCRATCH}),
        ("workspace-write", {SCRATCH, WORKSPACE}),
        ("full", {SCRATCH, WORKSPACE, "/Users/me", "/private/etc"}),
    ],
)
def test_a_mode_decides_what_is_written(mode: str, written: set[str]) -> None:
    profile = of_shell(mode)
    for folder in (SCRATCH, WORKSPACE, "/Users/me", "/private/etc"):
        assert allows(profile, "file-write-create", f"{folder}/x") == (folder in written), folder
        assert allows(profile, "file-read-data", f"{folder}/x"), folder


@pytest.mark.parametrize("mode", ["read-only", "workspace-write", "full"])
def test_what_is_hidden_or_protected_is_so_in_each_mode(mode: str) -> None:
    profile = of_shell(mode)
    for path in (
        "/Users/me/.ssh/id",
        f"{WORKSPACE}/inner/.env",
        "/private/tmp/x",
        "/private/var/folders/y",
        "/dev/disk0",
    ):
        assert not allows(profile, "file-read-data", path), path
        assert not allows(profile, "file-write-data", path), path
    for path in (f"{WORKSPACE}/.git/config", f"{WORKSPACE}/inner/.git", f"{WORKSPACE}/inner/.git/hooks/x"):
        assert allows(profile, "file-read-data", path), path
        assert not allows(profile, "file-write-create", path), path
        assert not allows(profile, "file-write-unlink", path), path
    # A folder above one of them can't be moved away with it, and is otherwise as free as before.
    assert not allows(profile, "file-write-unlink", f"{WORKSPACE}/inner")
    assert not allows(profile, "file-write-unlink", "/Users/me")
    assert allows(profile, "file-write-unlink", f"{WORKSPACE}/inner/file") == (mode != "read-only")
    assert allows(profile, "file-write-data", "/dev/null")


def test_a_given_place_is_written_and_its_locked_parts_are_not() -> None:
    git = f"{WORKSPACE}/.git"
    rules = (("/", "read"), (f"{git}/config", "read"), (git, "write"), (WORKSPACE, "write"))
    profile = make_shell_profile(rules=rules, scratch=SCRATCH, network=False)
    assert allows(profile, "file-write-create", f"{git}/objects/x")
    assert not allows(profile, "file-write-data", f"{git}/config")
    assert not allows(profile, "file-write-unlink", git)


def test_a_protected_place_that_is_not_there_is_not_made() -> None:
    profile = of_shell(absent=(f"{WORKSPACE}/.mcp.json", f"{WORKSPACE}/.ferrule"))
    for path in (f"{WORKSPACE}/.mcp.json", f"{WORKSPACE}/.ferrule", f"{WORKSPACE}/.ferrule/x"):
        assert not allows(profile, "file-write-create", path)
    assert allows(profile, "file-write-create", f"{WORKSPACE}/x")


@pytest.mark.parametrize(
    ("network", "told"),
    [
        (False, []),
        (4444, ['(allow network-outbound (remote ip "localhost:4444"))']),
        (True, ['(allow network-outbound (remote ip "*:*"))', '(allow network-inbound (local ip "*:*"))']),
    ],
)
def test_the_network_is_none_one_port_or_all(network: bool | int, told: list[str]) -> None:
    lines = [line for line in of_shell(network=network).text.splitlines() if "network" in line]
    assert lines[: len(told)] == told
    assert network is True or len(lines) == len(told)
    assert not [line for line in lines if "unix" in line]
