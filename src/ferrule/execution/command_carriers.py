"""Programs that run others which they are given, where the parser of command lines doesn't look through them: data.

Only rules that deny or ask see through these: a program that is missing here is matched by its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

__all__ = ["CHANGING_RIGHTS", "GIT_FORMS", "SHELLS", "find_texts", "is_carrier"]

CHANGING_RIGHTS = ("sudo", "doas", "su", "pkexec", "runuser", "setpriv", "unshare", "nsenter", "chroot", "systemd-run")
"""Programs that run others with other rights, or in another root."""

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "ash", "csh", "tcsh", "rbash", "pwsh")

_ALWAYS: Final = frozenset(
    (
        *CHANGING_RIGHTS,
        *("capsh", "sg", "newgrp", "runcon", "setarch", "linux32", "linux64", "i386", "x86_64", "uname26", "fakeroot"),
        *("sudoedit", "run0", "gosu", "su-exec", "bwrap", "firejail", "proot", "fakechroot", "start-stop-daemon"),
        *(
            "busybox",
            "toybox",
            "flock",
            "watch",
            "strace",
            "ltrace",
            "parallel",
            "script",
            "entr",
            "expect",
            "unbuffer",
        ),
        *("ionice", "taskset", "chrt", "prlimit", "numactl", "cgexec", "choom", "coresched", "uclampset", "softlimit"),
        *("env", "timeout", "nice", "nohup", "stdbuf", "setsid", "time", "xargs", "chronic", "ts"),
        *("eval", "exec", "builtin"),  # but not `command`, which mostly looks a program up
        *("ssh", "mosh", "docker", "podman", "nerdctl", "kubectl", "oc", "lxc", "vagrant"),
        *("npx", "bunx", "pnpx", "uvx", "uv", "pipx", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi"),
        *("screen", "tmux", "dbus-run-session", "dbus-launch", "xvfb-run", "run-parts", "run-one", "daemonize"),
        *("valgrind", "perf", "gdb", "lldb", "rr", "hyperfine", "nodemon", "cross-env", "concurrently", "watchexec"),
        *(
            "socat",
            "nc",
            "ncat",
            "catchsegv",
            "ld.so",
            "direnv",
            "dotenv",
            "nix-shell",
            "devbox",
            "doppler",
            "op",
            "aws-vault",
            "logsave",
            "faketime",
        ),
        *("inotifywait", "fswatch", "reflex", "retry", "rlwrap", "sem", "torsocks", "proxychains", "proxychains4"),
    )
)
_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "npm": ("exec", "x", "explore", "--script-shell"),
    "pnpm": ("exec", "dlx", "run", "--shell", "--script-shell"),
    "yarn": ("exec", "dlx", "run", "node"),
    "bun": ("x", "run", "exec"),
    "deno": ("run", "task", "x"),
    **dict.fromkeys(("conda", "mamba", "micromamba", "asdf", "mise", "rtx"), ("run", "exec", "x")),
    **dict.fromkeys(("bundle", "rbenv", "pyenv", "nodenv", "plenv", "lerna", "nx", "composer"), ("exec", "run-many")),
    "nix": ("run", "shell", "develop"),
    "go": ("-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"),
    "cargo": ("watch", "--config"),
    **dict.fromkeys(SHELLS, ("-",)),
    **dict.fromkeys(("vim", "vi", "view", "nvim", "ex", "emacs", "less", "more"), ("-c", "--cmd", "--eval", "+")),
    **dict.fromkeys(("scp", "sftp"), ("-o", "-S", "-D")),
    **dict.fromkeys(("apt", "apt-get"), ("-o", "--option")),
    **dict.fromkeys(("find", "fd", "fdfind"), ("-exec", "-ok", "-x", "-X", "--exec")),
    "rsync": ("-", "--rsh", "--rsync-path"),
    "man": ("-P", "-H", "--pager", "--html"),
    "rg": ("--pre", "--hostname-bin"),
    "sort": ("--compress",),
    "split": ("--filter",),
    "zip": ("-T", "--unzip-command"),
    "cpio": ("--rsh-command",),
    "fzf": ("--bind", "--preview"),
    "make": ("SHELL=", "--eval"),
    "tar": ("-I", "--use", "--checkpoint-action", "--to-command", "--rsh-command", "-F", "--info-script", "--new-vol"),
    "git": (
        *("run", "foreach", "filter-branch", "--exec", "-x", "--extcmd", "--upload-pack", "--receive-pack", "-u"),
        *("--open-files-in-pager", "-O", "for-each-repo", "-c", "--config-env", "--exec-path", "ext::", "hook"),
    ),
}
"""Programs that run others with one of these words, or one that begins with it."""

GIT_FORMS: Final[Mapping[str, str]] = {"send-pack": "push", "http-push": "push", "stage": "add", "fetch-pack": "fetch"}
"""Git commands that do what another one does."""

_LOADER = re.compile(r"ld-(?:linux|musl|uClibc)[\w.-]*\.so[.\d]*|ld\d*\.so[.\d]*|ld-\d[\d.]*\.so")
_SEPARATOR = re.compile(r"[;|&\n(){}`]+")
_MOST_TEXTS = 50
_MOST_VALUES = 4
"""How often the value of an option may have one itself, as in `--checkpoint-action=exec=rm`."""


def is_carrier(name: str, words: Sequence[str]) -> bool:
    """Whether the program of this name runs another one that its words may name."""
    if name in _ALWAYS or (name.startswith("ld") and _LOADER.fullmatch(name)):
        return True
    marks = _WITH.get("git" if name.startswith("git-") else name)
    return marks is not None and any(word.startswith(marks) for word in words)


def find_texts(word: str) -> Iterator[str]:
    """The command lines that one word may hold, such as `--checkpoint-action=exec=rm x` and `-Irm x`."""
    texts = [word]
    if "=" in word:
        texts += [word.split("=", count)[-1] for count in range(1, min(word.count("="), _MOST_VALUES) + 1)]
    if word.startswith("-") and not word.startswith("--"):
        texts.append(word[2:])
    for text in texts:
        pieces = _SEPARATOR.split(text, _MOST_TEXTS)
        # The word itself is looked at as a program by the caller. `!` is how git and vim mark a shell's text.
        yield from (piece.lstrip("!:+") for piece in pieces if piece != word or " " in piece)
