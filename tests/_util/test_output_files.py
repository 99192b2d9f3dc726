"""Where output goes: files are replaced as a whole, at the end of their links; devices and pipes are written to."""

from __future__ import annotations

import os
import pty
import threading
from pathlib import Path

import pytest

from ferrule._util.output_files import open_output, write_output


def test_a_file_is_replaced_at_the_end_of_its_link_and_keeps_its_rights(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    target, link = folder / ("n" * 250), tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    before = target.stat().st_ino
    write_output(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_ino != before
    assert target.stat().st_mode & 0o777 == 0o640
    assert [*folder.iterdir()] == [target]


def test_a_link_to_nothing_makes_the_file_it_leads_to(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("made")
    write_output(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "made").read_bytes() == b"new"


def test_an_interruption_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half() -> None:
        with open_output(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [path]


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_output(path, b"through it")
    reader.join()
    assert read == [b"through it"]
    assert path.is_fifo()


def test_a_device_stays_a_device() -> None:
    # A pseudo-terminal is a device that nobody can replace, whatever goes wrong here.
    master, slave = pty.openpty()
    try:
        path = Path(os.ttyname(slave))
        write_output(path, b"shown\n")
        assert os.read(master, 100) == b"shown\r\n"
        assert path.is_char_device()
    finally:
        os.close(slave)
        os.close(master)


@pytest.mark.parametrize("path", [Path("-"), Path("/dev/stdout")])
def test_standard_output_is_written_to_under_each_of_its_names(
    path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    print("before")
    write_output(path, b"written\n")
    print("after", flush=True)
    assert capfdbinary.readouterr().out == b"before\nwritten\nafter\n"


def test_what_cannot_be_written_is_named_as_it_was_given(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    cases = {
        tmp_path: "Is a directory",
        tmp_path / "none" / "file": "there is no folder",
        loop: "Too many levels of symbolic links",
    }
    for path, reason in cases.items():
        with pytest.raises(OSError, match=reason) as caught:
            write_output(path, b"")
        assert caught.value.filename == str(path)
    assert [*tmp_path.iterdir()] == [loop]
