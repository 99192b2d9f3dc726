"""What git's commands do, and which options keep it so: data, and the reading of a git command line.

Reading commands may still run what a repository's settings name (a file system monitor, a diff driver), which
`settings.may_run_settings` looks at; a command that only reads runs where nothing can be written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ferrule.sandbox.shell.command_line.options import OptionTable, UnsureError, parse_table, split_options
from ferrule.sandbox.shell.command_line.syntax import Word

__all__ = ["GitCommand", "read_git"]


@dataclass(frozen=True, slots=True)
class GitCommand:
    """What one git command does: `kind` is reads, writes (the repository) or runs; `folders` are those of `-C`.

    `files` are those that options give it to read.
    `shows_contents`: what it reads are the contents of files, of all that aren't excluded.
    """

    kind: str
    folders: tuple[Word, ...] = ()
    files: tuple[Word, ...] = ()
    addresses: tuple[str, ...] = ()
    shows_contents: bool = False


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _table(text: str) -> OptionTable:
    # A command of git has several lists of options, so what a beginning stands for isn't certain.
    return parse_table(text, abbreviates=False)


# Of `git diff`, `log` and `show`: none that writes a file (--output), runs a program (--ext-diff, --textconv) or reads
# outside of the repository (--no-index).
_SHOWING_OPTIONS = (
    "-pusabwRzq0123456789cmtrDiEFPle -n=? -U=? -G= -L=? -M=? -C=? -O=FILE --stat=? --shortstat --numstat --name-only "
    "--name-status --cached --staged --oneline --graph --all --patch --no-patch --raw --summary --word-diff=? "
    "--color=? --no-color --no-ext-diff --no-textconv --no-renames --find-renames=? --find-copies --follow "
    "--decorate=? --no-decorate --merges --no-merges --first-parent --reverse --abbrev-commit --no-abbrev-commit "
    "--date-order --topo-order --branches --tags --remotes --ignore-all-space --ignore-space-change "
    "--ignore-blank-lines --minimal --patience --histogram --exit-code --quiet --check --full-index --binary "
    "--unified=? --merge-base --left-right --cherry-pick --show-signature --dirstat --compact-summary --pretty=? "
    "--abbrev=? --no-prefix --relative=? --submodule=? --ignore-submodules=? --no-walk --max-count= --since= --until= "
    "--after= --before= --author= --committer= --grep= --format= --date= --diff-filter= --skip= --diff-algorithm="
)
_SHOWING = _table(f"{_SHOWING_OPTIONS} -S=")
_BLAMING = _table(f"{_SHOWING_OPTIONS} -S=FILE --contents=FILE --ignore-revs-file=FILE --ignore-rev=")
_PLAIN = _table(
    "-abcdefhiklmnopqrstuvwxyz0123456789ACDLMSTUVXBEFGPRW --short=? --long --branch --porcelain=? --show-stash "
    "--ignored=? --name-only --abbrev-ref=? --show-toplevel --verify --all --tags --abbrev=? --cached --deleted "
    "--others --modified --stage --unmerged --error-unmatch --exclude-standard --full-name --git-dir "
    "--is-inside-work-tree --is-inside-git-dir --show-prefix --show-cdup --count=? --heads --refs --merged "
    "--no-merged --contains --numbered --summary --email --untracked-files=? --recurse-submodules --absolute-git-dir "
    "--symbolic-full-name --quiet --pretty=? --exclude= --format= --sort= --max-count="
)
_LISTING_FILES = _table(
    "-cdmoiszkuvft -x,--exclude= -X,--exclude-from=FILE --exclude-per-directory=FILE --cached --deleted --modified "
    "--others --ignored --stage --unmerged --killed --directory --no-empty-directory --deduplicate --exclude-standard "
    "--error-unmatch --full-name --recurse-submodules --abbrev=? --debug --eol --sparse --format= --with-tree="
)
_GREPPING = _table(
    "-aiIwvhHnlLcoqrzEGPFpW0123456789 -e= -f=FILE -A= -B= -C= -m= --ignore-case --word-regexp --invert-match "
    "--line-number --files-with-matches --name-only --count --fixed-strings --extended-regexp --perl-regexp "
    "--basic-regexp --cached --untracked --no-index --show-function --and --or --not --all-match --quiet --color=? "
    "--context= --after-context= --before-context= --max-depth= --max-count= --threads="
)

_READING: dict[str, OptionTable] = {
    **dict.fromkeys(("diff", "log", "show", "whatchanged", "shortlog", "reflog"), _SHOWING),
    **dict.fromkeys(("blame", "annotate"), _BLAMING),
    **dict.fromkeys(
        _names(
            "status ls-tree rev-parse rev-list describe cat-file show-ref name-rev merge-base for-each-ref "
            "count-objects diff-tree diff-index diff-files check-ignore var version cherry show-branch"
        ),
        _PLAIN,
    ),
    "ls-files": _LISTING_FILES,
    "grep": _GREPPING,
}
# Their first argument, or its absence, makes these only read.
_LISTING: dict[str, tuple[frozenset[str], OptionTable]] = {
    "stash": (frozenset({"list", "show"}), _SHOWING),
    "worktree": (frozenset({"list"}), _PLAIN),
    "remote": (frozenset({"show", "get-url"}), _table("-v --verbose")),
    "notes": (frozenset({"list", "show"}), _PLAIN),
    "submodule": (frozenset({"status"}), _PLAIN),
    "bisect": (frozenset({"log"}), _PLAIN),
}
_LIST_OPTIONS: dict[str, OptionTable] = {
    "branch": _table(
        "-arvi --all --remotes --list --show-current --verbose --color=? --no-color --ignore-case --sort= --format="
    ),
    "tag": _table("-n -l,--list --color=? --sort= --format="),
    "remote": _table("-v --verbose"),
}
_CONFIG_READING = frozenset({"--get", "--get-all", "--get-regexp", "--list", "-l"})
_CONFIG_KEY = re.compile(r"[A-Za-z][\w-]*\.[^-\s]\S*")
_PLAIN_KEY = re.compile(
    r"(?:user|author|committer|core|init|remote|branch|pull|push|merge|diff|commit)\.", re.IGNORECASE
)
_USER_SETTINGS = Word(None, 0, 0, "~/.gitconfig", has_tilde=True)
_CONFIG_OPTIONS = frozenset({"--show-origin", "--show-scope", "--name-only", "--global", "--local", "--system", "-z"})

_WRITING = _names(
    "add commit checkout switch restore reset merge rm mv branch tag stash cherry-pick revert rebase clean am apply "
    "init fetch pull push config remote notes worktree gc prune repack reflog update-index update-ref symbolic-ref "
    "read-tree write-tree commit-tree hash-object sparse-checkout maintenance pack-refs replace rerere clone"
)
# Options that name a program for git to run.
_RUNNING_OPTIONS = (
    "--exec",
    "--upload-pack",
    "--receive-pack",
    "--open-files-in-pager",
    "--ext-diff",
    "--textconv",
    "--output",
    "--config",
    "--template",
    "--tool",
    "--extcmd",
    "--gpg-sign",
    "--strategy",
    "--upload-archive",
)
_RUNNING_LETTERS = {
    "rebase": "xsi",
    "clone": "uc",
    "fetch": "",
    "merge": "s",
    "pull": "s",
    "cherry-pick": "s",
    "grep": "O",
    "commit": "",
    "am": "",
    "add": "ie",
    "archive": "",
}


_SHOWING_CONTENTS = frozenset({"diff", "show", "blame", "grep", "cat-file", "annotate", "stash"})
_PATCH_OPTIONS = ("-p", "-u", "-U", "-c", "-m", "-L", "--patch", "--unified", "--cc", "--binary", "--word-diff")
_FILE_OPTIONS = ("--file", "--pathspec-from-file", "--reference", "--separate-git-dir")
_TAKING_VALUE = frozenset({"-m", "-am", "--message", "-F", "--file"})


def read_git(arguments: Sequence[Word]) -> GitCommand:
    """Tell what git does with these arguments. Raises `UnsureError` for what may run another program."""
    folders, rest = list[Word](), list(arguments)
    while rest and (rest[0].text or "")[:1] == "-":
        option = rest.pop(0).text
        if option == "-C" and rest:
            if folders or rest[0].text is None:
                raise UnsureError(
                    "git with more than one -C, or a folder that isn't known, whose settings may run programs"
                )
            folders.append(rest.pop(0))
        elif option not in ("--no-pager", "--no-optional-locks", "--literal-pathspecs"):
            raise UnsureError(f"git's option {option}")
    if not rest or rest[0].text is None:
        raise UnsureError("git without a known command")
    verb, words = rest[0].text, rest[1:]
    if _only_reads(verb, words):
        files = split_options(words, _READING[verb]).values_of("FILE") if verb in _READING else []
        files += [_USER_SETTINGS] if _reads_user_settings(verb, words) else []
        return GitCommand("reads", tuple(folders), tuple(files), shows_contents=_shows_contents(verb, words))
    if verb not in _WRITING:
        return GitCommand("runs", tuple(folders))
    _check_running_options(verb, words)
    addresses = tuple(word.text for word in words if word.text)
    return GitCommand("writes", tuple(folders), tuple(_find_given_files(words)), addresses)


def _shows_contents(verb: str, words: Sequence[Word]) -> bool:
    if verb == "log":
        return any(word.text is None or word.text.startswith(_PATCH_OPTIONS) for word in words)
    return verb in _SHOWING_CONTENTS


def _reads_user_settings(verb: str, words: Sequence[Word]) -> bool:
    """Whether it shows the user's own settings, which may hold credentials."""
    texts = [word.text for word in words]
    if verb == "var":
        return any(text is None or text[:1] == "-" for text in texts)
    if verb != "config" or "--local" in texts:
        return False
    keys = [text for text in texts if text is None or text[:1] != "-"]
    is_pattern = "--get-regexp" in texts or len(keys) != 1
    return is_pattern or _PLAIN_KEY.match(keys[0] or "") is None


def _only_reads(verb: str, words: Sequence[Word]) -> bool:
    first = words[0].text if words else None
    if verb == "config":
        if len(words) == 1 and first and _CONFIG_KEY.fullmatch(first):
            return True
        return first in _CONFIG_READING and all(
            word.text is not None and (word.text[:1] != "-" or word.text in _CONFIG_OPTIONS) for word in words[1:]
        )
    if verb == "reflog" and first in ("expire", "delete", "drop", "write"):
        return False
    if verb in _LISTING and first in _LISTING[verb][0]:
        return _has_only(words[1:], _LISTING[verb][1])
    if verb in _LIST_OPTIONS:
        return _lists(words, _LIST_OPTIONS[verb])
    table = _READING.get(verb)
    if table is None:
        return False
    if not _has_only(words, table):
        raise UnsureError(f"git {verb} with an option that may write or run")
    return True


def _lists(words: Sequence[Word], table: OptionTable) -> bool:
    """Whether only options for listing are given; an operand is a pattern only with `--list`."""
    if not _has_only(words, table):
        return False
    options = split_options(words, table)
    return not options.operands or options.has("--list", "-l")


def _has_only(words: Sequence[Word], table: OptionTable) -> bool:
    if any(word.text is None and word.may_be_option for word in words):
        return False
    try:
        split_options(words, table)
    except UnsureError:
        return False
    return True


def _find_given_files(words: Sequence[Word]) -> Iterator[Word]:
    """The files that options of a writing command name in the same word, as `-F/etc/passwd` does."""
    for word in words:
        text = word.text or ""
        name, _, value = text.partition("=")
        if value and len(name) > 3 and any(option.startswith(name) for option in _FILE_OPTIONS):
            yield Word(value, word.start, word.end, value)
        elif text[:2] in ("-F", "-t") and text[2:]:
            yield Word(text[2:], word.start, word.end, text[2:])


def _check_running_options(verb: str, words: Sequence[Word]) -> None:
    letters = _RUNNING_LETTERS.get(verb, "")
    for index, word in enumerate(words):
        text = word.text
        if text is None:
            is_value = word.is_single and index > 0 and words[index - 1].text in _TAKING_VALUE
            if word.may_be_option and not is_value:
                raise UnsureError(f"git {verb} with an option that isn't known before it runs")
            continue
        if text == "--":
            return
        name = text.partition("=")[0]
        is_long = len(name) > 3 and any(option.startswith(name) for option in _RUNNING_OPTIONS)
        is_short = text[:1] == "-" and text[1:2] != "-" and any(letter in text[1:] for letter in letters)
        if is_long or is_short or "ext::" in text:
            raise UnsureError(f"git {verb} {text} may run another program")
