"""Programs that run another one, which their arguments name: the one table of them, for all who look through them.

A rule that denies or asks looks for its program among all words of a wrapper, since it may look too often. The judge of
command lines looks only through wrappers whose own options it can separate from what they run. A program that is
missing here is matched, and judged, by its own words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["CHANGING_RIGHTS", "SHELLS", "WRAPPERS", "Wrapper", "is_wrapper"]

_ANY: Final = ("",)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that runs another one."""

    denied_with: tuple[str, ...] = _ANY
    """A rule that denies or asks sees through it if one of its words begins with one of these; empty for never."""
    options: str | None = None
    """Its own options, as `parse_table` reads them, if the judge can parse what it runs; None if it can't."""
    operand: str = ""
    """The form of the operand that comes before the program that it runs, if there is one: a regular expression."""
    form: str = "program"
    """What follows its options: a `program`; `names` is one that gets more arguments from its input, `shell` one that
    runs the text after `-c`; `text` are words that are a command line, `trap` one word that is.
    """


CHANGING_RIGHTS: Final = (
    "sudo", "doas", "su", "pkexec", "runuser", "setpriv", "unshare", "nsenter", "chroot", "systemd-run",
)  # fmt: skip
"""Programs that run others with other rights, or in another root."""

SHELLS: Final = ("sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "ash", "csh", "tcsh", "rbash", "pwsh")

_PARSED: Final[Mapping[str, Wrapper]] = {
    "timeout": Wrapper(
        options="-vfp -k,--kill-after= -s,--signal= --foreground --preserve-status --verbose", operand=r"[\d.]+[smhd]?"
    ),
    "nohup": Wrapper(options=""),
    "nice": Wrapper(options="-0123456789 -n,--adjustment="),
    "stdbuf": Wrapper(options="-i,--input= -o,--output= -e,--error="),
    "setsid": Wrapper(options="-cfw --ctty --fork --wait"),
    "time": Wrapper(options="-p"),
    "ionice": Wrapper(options="-t -c,--class= -n,--classdata= --ignore"),
    "taskset": Wrapper(options="-ac --all-tasks --cpu-list", operand=r"(?:0x)?[\da-f,:-]+"),
    "chrt": Wrapper(
        options="-abfiorRv --batch --fifo --idle --other --rr --reset-on-fork --verbose --all-tasks", operand=r"\d+"
    ),
    "env": Wrapper(options="-i --ignore-environment"),
    "command": Wrapper(denied_with=(), options="-p"),  # it mostly looks a program up
    "exec": Wrapper(options=""),
    "xargs": Wrapper(
        options="-rtxo -0,--null -d,--delimiter= -I= -n,--max-args= -P,--max-procs= -L= -l=? -s,--max-chars= "
        "--max-lines=? --no-run-if-empty --verbose --exit --show-limits --open-tty",
        form="names",
    ),
    "eval": Wrapper(options="", form="text"),
    "trap": Wrapper(denied_with=(), options="", form="trap"),
    **dict.fromkeys(("sh", "bash", "dash"), Wrapper(denied_with=("-",), options="-cleux", form="shell")),
}
"""Those that the judge can parse."""

_UNPARSED: Final = (
    *("capsh", "sg", "newgrp", "runcon", "setarch", "linux32", "linux64", "i386", "x86_64", "uname26", "fakeroot"),
    *("sudoedit", "run0", "gosu", "su-exec", "bwrap", "firejail", "proot", "fakechroot", "start-stop-daemon"),
    *("busybox", "toybox", "flock", "watch", "strace", "ltrace", "parallel", "script", "entr", "expect", "unbuffer"),
    *("prlimit", "numactl", "cgexec", "choom", "coresched", "uclampset", "softlimit", "chronic", "ts", "builtin"),
    *("ssh", "mosh", "docker", "podman", "nerdctl", "kubectl", "oc", "lxc", "vagrant"),
    *("npx", "bunx", "pnpx", "uvx", "uv", "pipx", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi"),
    *("screen", "tmux", "dbus-run-session", "dbus-launch", "xvfb-run", "run-parts", "run-one", "daemonize"),
    *("valgrind", "perf", "gdb", "lldb", "rr", "hyperfine", "nodemon", "cross-env", "concurrently", "watchexec"),
    *("socat", "nc", "ncat", "catchsegv", "ld.so", "direnv", "dotenv", "nix-shell", "devbox", "doppler", "op"),
    *("aws-vault", "logsave", "faketime", "inotifywait", "fswatch", "reflex", "retry", "rlwrap", "sem", "torsocks"),
    *("proxychains", "proxychains4"),
)
"""Those that only a rule that denies or asks sees through."""

_UNPARSED_WITH: Final[Mapping[str, tuple[str, ...]]] = {
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
"""The same for those that run others with one of these words, or one that begins with it."""

WRAPPERS: Final[Mapping[str, Wrapper]] = {
    **dict.fromkeys((*CHANGING_RIGHTS, *_UNPARSED), Wrapper()),
    **{name: Wrapper(words) for name, words in _UNPARSED_WITH.items()},
    **_PARSED,
}
"""All wrappers by their names."""

_LOADER: Final = re.compile(r"ld-(?:linux|musl|uClibc)[\w.-]*\.so[.\d]*|ld\d*\.so[.\d]*|ld-\d[\d.]*\.so")


def is_wrapper(name: str, words: Sequence[str]) -> bool:
    """Whether a rule that denies or asks looks for its program among the words of this one."""
    if name.startswith("ld") and _LOADER.fullmatch(name):
        return True
    wrapper = WRAPPERS.get("git" if name.startswith("git-") else name)
    return wrapper is not None and any(word.startswith(wrapper.denied_with) for word in words)
