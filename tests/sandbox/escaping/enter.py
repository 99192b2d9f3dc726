"""Takes on a circumstance, then becomes the program that is named after `--`.

    python -m escaping.enter [--user] [--filtered] -- COMMAND ...

`--user` (root only): an ordinary user, with no capabilities, who nevertheless can read this Python. `--filtered`: the
filter of an ordinary container, which refuses the calls that make, enter or change namespaces.
"""

import argparse
import contextlib
import os
import sys
from pathlib import Path

from escaping.container_filter import install
from escaping.mounts import bind, keep_to_oneself, mount_memory, move

# Nobody's: no other process on the machine should have it, since a user's own processes are fair game for payloads.
USER = 54321
PLACE = Path("/srv")


def make_place() -> None:
    """A folder that everybody may write to, where a shell's sandbox shows what there is: it hides /tmp and /var/tmp."""
    keep_to_oneself()
    if PLACE.is_dir():
        mount_memory(PLACE, "mode=1777")
        with contextlib.suppress(OSError):  # before Linux 6.6 there are no attributes there
            os.setxattr(PLACE, "user.tried", b"")
            os.environ["ESCAPES_PLACE"] = str(PLACE)


def become_ordinary_user() -> None:
    """Give up root, in a view of the file system where Python can be read by everybody."""
    paths = {sys.base_prefix, sys.prefix, *os.environ["PYTHONPATH"].split(":")}
    needed = sorted({Path(path).resolve() for path in paths})
    for shut in {above for path in needed if (above := shut_folder(path))}:
        replace(shut, [path for path in needed if path.is_relative_to(shut)])
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    os.environ["HOME"] = "/"


def shut_folder(path: Path) -> Path | None:
    """The topmost folder above a path that others may not pass through, such as /root."""
    return next((above for above in reversed(path.parents) if not above.stat().st_mode & 0o001), None)


def replace(shut: Path, needed: list[Path]) -> None:
    """Mount an open folder over a shut one, with nothing of it but what is needed."""
    aside = Path("/mnt")
    mount_memory(aside)
    for number, path in enumerate(needed):
        (aside / str(number)).mkdir()
        bind(path, aside / str(number))
    mount_memory(shut)
    for number, path in enumerate(needed):
        path.mkdir(parents=True, exist_ok=True)  # one may lie in another
        move(aside / str(number), path)


def main() -> None:
    """Enter, and become the command."""
    options, command = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    parser = argparse.ArgumentParser()
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--filtered", action="store_true")
    arguments = parser.parse_args(options)
    if os.geteuid() == 0:
        make_place()
    if arguments.user and os.geteuid() == 0:
        become_ordinary_user()
    if arguments.filtered:
        install()
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
