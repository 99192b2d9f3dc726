"""Mounts: files that code reads where they lie, and neither changes nor leaves by."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ferrule.blobs import BlobStore, hash_blob
from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.doctor import detect_layers
from ferrule.sandbox.mounted_files import MountedFile
from ferrule.sandbox.python import Mount, PythonSandbox
from ferrule.sandbox.python.mounts import read_mounts, resolve_mounts
from ferrule.sandbox.python.parent.zygote_pool import ZygotePool, ZygoteSettings
from ferrule.sandbox.tiers import Tier

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what holds these tiers is Linux's")

SECRET = "the secret outside"


@pytest.fixture(params=["full", "container"])
async def sandbox(request: pytest.FixtureRequest) -> AsyncIterator[PythonSandbox]:
    if request.param == "full" and detect_layers().tier is not Tier.FULL:
        pytest.skip(f"this machine has no full tier: {detect_layers().missing}")
    async with PythonSandbox(packages=(), tier=request.param) as sandbox:
        yield sandbox


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table in a folder beside something else."""
    (tmp_path / "outside.txt").write_text(SECRET)
    path = tmp_path / "sales.csv"
    path.write_text("city,amount\nRome,3\n")
    return path


async def test_a_mount_is_read_by_its_name_and_shows_what_is_there_now(sandbox: PythonSandbox, table: Path) -> None:
    mounts = [Mount(table, "data/sales.csv"), Mount(str(table))]
    run = await sandbox.run("open('data/sales.csv').read() == open('sales.csv').read()", mounts=mounts)
    assert (run.value, run.error, run.files) == (True, None, {})
    with table.open("a") as file:
        file.write("Paris,4\n")
    assert "Paris" in (await sandbox.run("open('sales.csv').read()", mounts=mounts)).value


async def test_a_file_of_40_megabytes_is_read_without_a_copy(
    sandbox: PythonSandbox, tmp_path: Path, table: Path
) -> None:
    large = tmp_path / "large.bin"
    with large.open("wb") as file:
        file.truncate(40_000_000)
    run = await sandbox.run("import os\nos.path.getsize('large.bin')", mounts=[Mount(large)])
    assert (run.value, run.error) == (40_000_000, None)


async def test_what_is_too_large_to_copy_says_its_name_and_what_to_do(tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    with large.open("wb") as file:
        file.truncate(40_000_000)
    sandbox = PythonSandbox(packages=())
    for given in (large, bytes(40_000_000)):
        with pytest.raises(SandboxInputError, match=r"inputs\['large.bin'\]: 40,000,000 bytes .* a Mount"):
            await sandbox.run("1", {"large.bin": given})


WRITING = {
    "open to write": "open('sales.csv', 'w')",
    "append": "open('sales.csv', 'a').write('x')",
    "read and write": "open('sales.csv', 'r+').write('x')",
    "truncate": "os.truncate('sales.csv', 0)",
    "real path": "open(os.path.realpath('sales.csv'), 'w')",
    "mode": "os.chmod('sales.csv', 0o777)",
    "times": "os.utime('sales.csv', (0, 0))",
    "remove": "os.remove(os.path.realpath('sales.csv'))",
    "replace": "open('mine', 'w').close(); os.replace('mine', os.path.realpath('sales.csv'))",
    "hard link": "os.link(os.path.realpath('sales.csv'), 'linked'); open('linked', 'w')",
    "beside it": "open(os.path.dirname(os.path.realpath('sales.csv')) + '/made', 'w')",
}


@pytest.mark.parametrize("attempt", WRITING.values(), ids=WRITING.keys())
async def test_nothing_is_written_through_a_mount(sandbox: PythonSandbox, table: Path, attempt: str) -> None:
    before = (table.read_bytes(), table.stat())
    run = await sandbox.run(f"import os\n{attempt}", mounts=[Mount(table)])
    assert run.error is not None
    assert "OSError" in run.error.message or "PermissionError" in run.error.message
    assert (table.read_bytes(), table.stat()) == before
    assert sorted(path.name for path in table.parent.iterdir()) == ["outside.txt", "sales.csv"]


READING = {
    "beside it": "open(os.path.dirname(os.path.realpath('sales.csv')) + '/outside.txt').read()",
    "by dots": "open(os.path.realpath('sales.csv') + '/../outside.txt').read()",
    "its folder": "os.listdir(os.path.dirname(os.path.realpath('sales.csv')))",
}


@pytest.mark.parametrize("attempt", READING.values(), ids=READING.keys())
async def test_nothing_beside_a_mount_is_read(sandbox: PythonSandbox, table: Path, attempt: str) -> None:
    run = await sandbox.run(f"import os\n{attempt}", mounts=[Mount(table)])
    shown = f"{run.value} {run.stdout} {run.error}"
    assert SECRET not in shown
    assert "outside.txt" not in str(run.value)


async def test_a_link_of_the_code_s_own_leads_nowhere_new(sandbox: PythonSandbox, table: Path) -> None:
    swap = (
        "import os\nreal = os.path.realpath('sales.csv')\nos.remove('sales.csv')\n"
        f"os.symlink({str(table.parent / 'outside.txt')!r}, 'sales.csv')\nopen('sales.csv').read()"
    )
    run = await sandbox.run(swap, mounts=[Mount(table)])
    assert run.error is not None
    again = await sandbox.run("open('sales.csv').read()", mounts=[Mount(table)])
    assert again.value == "city,amount\nRome,3\n"


async def test_a_link_is_followed_when_it_is_used(sandbox: PythonSandbox, table: Path) -> None:
    link = table.parent / "latest.csv"
    link.symlink_to(table)
    assert "Rome" in (await sandbox.run("open('latest.csv').read()", mounts=[Mount(link)])).value
    other = table.parent / "other.csv"
    other.write_text("other\n")
    link.unlink()
    link.symlink_to(other)
    assert (await sandbox.run("open('latest.csv').read()", mounts=[Mount(link)])).value == "other\n"
    secret = table.parent / ".env"
    secret.write_text(SECRET)
    link.unlink()
    link.symlink_to(secret)
    with pytest.raises(SandboxInputError, match="hidden"):
        await sandbox.run("open('latest.csv').read()", mounts=[Mount(link)])


async def test_a_file_that_was_replaced_is_the_new_one_in_the_next_run(sandbox: PythonSandbox, table: Path) -> None:
    mounts = [Mount(table)]
    assert "Rome" in (await sandbox.run("open('sales.csv').read()", mounts=mounts)).value
    (table.parent / "new").write_text("new\n")
    (table.parent / "new").replace(table)
    assert (await sandbox.run("open('sales.csv').read()", mounts=mounts)).value == "new\n"


@pytest.mark.parametrize("tier", [Tier.FULL, Tier.CONTAINER])
@pytest.mark.parametrize("becomes", ["link", "file", "folder"])
async def test_what_is_swapped_after_it_was_checked_is_never_shown(table: Path, tier: Tier, becomes: str) -> None:
    if tier is Tier.FULL and detect_layers().tier is not Tier.FULL:
        pytest.skip(f"this machine has no full tier: {detect_layers().missing}")
    files = resolve_mounts([Mount(table)])
    table.rename(table.parent / "kept")  # so that its number isn't given to the next file
    if becomes == "link":
        table.symlink_to(table.parent / "outside.txt")
    elif becomes == "file":
        table.write_text(SECRET)
    else:
        table.mkdir()
    settings = ZygoteSettings((), (), tier, 1024, files=files)
    sandbox = PythonSandbox(packages=())
    async with sandbox:
        from ferrule._util.background import run_on_background_loop

        async def start() -> None:
            pool = ZygotePool(settings, sandbox._limits)
            try:
                await pool.get_zygote()
            finally:
                await pool.aclose()

        with pytest.raises(SandboxUnavailable, match=r"replaced|sales\.csv"):
            await run_on_background_loop(start())


@pytest.mark.parametrize(
    "name", [".env", ".env.local", "id_rsa", "server.key", ".netrc", "credentials.json", ".ENV", "x/.env/inner.txt"]
)
def test_what_is_hidden_from_commands_is_no_mount(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SECRET)
    with pytest.raises(SandboxInputError, match="hidden"):
        resolve_mounts([Mount(path, "harmless.txt")])
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    with pytest.raises(SandboxInputError, match="hidden"):
        resolve_mounts([Mount(link)])


def test_a_link_whose_name_is_hidden_is_no_mount(tmp_path: Path) -> None:
    (tmp_path / "settings.txt").write_text(SECRET)
    (tmp_path / ".env").symlink_to(tmp_path / "settings.txt")
    with pytest.raises(SandboxInputError, match="hidden"):
        resolve_mounts([Mount(tmp_path / ".env", "settings.txt")])


def test_keys_are_hidden_and_certificates_are_not(tmp_path: Path) -> None:
    (tmp_path / "certificate.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "key.pem").write_text("-----BEGIN PRIVATE KEY-----\n")
    assert [file.name for file in resolve_mounts([Mount(tmp_path / "certificate.pem")])] == ["certificate.pem"]
    with pytest.raises(SandboxInputError, match="hidden"):
        resolve_mounts([Mount(tmp_path / "key.pem")])


def test_a_home_folder_s_secrets_and_the_system_s_files_are_no_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host")
    for path in (tmp_path / ".ssh" / "config", "/proc/self/environ", "/proc/self/root/etc/hostname", "/sys/kernel/mm"):
        with pytest.raises(SandboxInputError):
            resolve_mounts([Mount(path, "x.txt")])


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "a/../x", "/x", "a//b", "a\\b", "x\n", ".private/x", ".", "./x", "a/", "x" * 300]
)
def test_names_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_text("x")
    with pytest.raises(SandboxInputError, match="name"):
        resolve_mounts([Mount(tmp_path / "x", name)])


def test_what_is_no_regular_file_is_refused_and_nothing_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing", tmp_path / "loop", "/dev/zero", "", "a\0b"):
        with pytest.raises(SandboxInputError):
            resolve_mounts([Mount(path, "x")])
    with pytest.raises(SandboxInputError, match="Mount"):
        read_mounts([3])  # type: ignore[list-item]


def test_two_files_have_two_names(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    for other in ("x", "x/y"):
        with pytest.raises(SandboxInputError, match="name"):
            resolve_mounts([Mount(tmp_path / "x"), Mount(tmp_path / "x", other)])
        with pytest.raises(SandboxInputError, match="name"):
            resolve_mounts([Mount(tmp_path / "x")], taken=[other])
    with pytest.raises(SandboxInputError, match="more than"):
        resolve_mounts(Mount(tmp_path / "x", f"x{number}") for number in range(101))


async def test_a_session_reads_its_mounts_in_each_run_and_after_going_back(sandbox: PythonSandbox, table: Path) -> None:
    async with await sandbox.session(mounts=[Mount(table)]) as session:
        await session.run("first = open('sales.csv').readline()")
        assert (await session.run("first, open('sales.csv').readlines()[1]")).value == ("city,amount\n", "Rome,3\n")
        if sandbox.tier is Tier.FULL:
            await session.rollback()
            assert "Rome" in (await session.run("open('sales.csv').read()")).value
            async with await session.fork() as fork:
                assert "Rome" in (await fork.run("open('sales.csv').read()")).value


async def test_many_sets_of_files_leave_few_zygotes(table: Path) -> None:
    async with PythonSandbox(packages=()) as sandbox:
        for number in range(4):
            run = await sandbox.run("open('x').read()", mounts=[Mount(table, "x"), Mount(table, f"y{number}")])
            assert run.error is None
        assert len(sandbox._mounted._pools) == 2


def test_files_are_kept_by_their_content() -> None:
    blobs = BlobStore()
    run = PythonSandbox(packages=()).run_sync("open('b', 'w').write('2')\nopen('a', 'w').write('11')")
    kept = run.keep_files(blobs)
    assert [(file.name, file.size, file.blob) for file in kept] == [
        ("a", 2, hash_blob(b"11")),
        ("b", 1, hash_blob(b"2")),
    ]
    assert [blobs.get(file.blob) for file in kept] == [b"11", b"2"]


def test_a_pinned_file_is_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("x")
    [file] = resolve_mounts([Mount(path)])
    os.close(file.open_pinned())
    with pytest.raises(OSError, match="replaced"):
        MountedFile(file.name, file.path, file.device, file.inode + 1).open_pinned()
    with pytest.raises(OSError, match="replaced"):
        MountedFile(file.name, file.path, file.device, file.inode + 1).check()


async def test_a_closed_sandbox_mounts_nothing(table: Path) -> None:
    sandbox = PythonSandbox(packages=())
    assert (await sandbox.run("open('sales.csv').readline()", mounts=[Mount(table)])).value == "city,amount\n"
    await sandbox.aclose()
    with pytest.raises(SandboxUnavailable, match="closed"):
        await sandbox.run("1", mounts=[Mount(table)])
