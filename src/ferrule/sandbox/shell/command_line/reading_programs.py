"""Programs that only read, and which of their options keep it so: data.

A program whose options can make it write or run another program has a table of the options that can't; any other
option makes its effects unknown. Programs without such options take any.
"""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.sandbox.shell.command_line.options import OptionTable

__all__ = ["READING_PROGRAMS", "TRUSTED_FOLDERS", "VERSION_OPTIONS", "VERSION_PROGRAMS", "ReadingProgram"]

TRUSTED_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/")
"""A program named by a path in one of these is the one of its name; by any other path it may be anything."""

ANY = OptionTable(any_others=True)


@dataclass(frozen=True, slots=True)
class ReadingProgram:
    """How a program reads.

    `skipped` operands come before the paths; the options in `instead` take their place. `paths` is whether the other
    operands are paths, `path_options` have one as their value, and `outputs` one that is written. With an option in
    `follows` it reads through the links below its paths, with one in `listing` paths that a file names. `check` names
    a further check in `outcome.py`. `is_recursive`: of a folder it reads all that is below, which `recursive_options`
    ask others to do.
    """

    table: OptionTable = ANY
    skipped: int = 0
    instead: tuple[str, ...] = ()
    paths: bool = True
    path_options: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    listing: tuple[str, ...] = ()
    check: str = ""
    is_recursive: bool = False
    recursive_options: tuple[str, ...] = ()


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PATHS = (
    "cat head tail wc nl tac rev cut paste join comm fold fmt expand unexpand column pr od hexdump hd "
    "stat readlink realpath cmp sum df readelf"
)
_CHECKSUMS = "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum"
_NO_PATHS = (
    "echo true false : sleep seq basename dirname expr tr whoami id groups uname arch nproc uptime tty logname users "
    "who command which whereis type printenv pwd ps free factor numfmt locale getconf cal exit break continue times"
)
# The letters of their options that take a value, which isn't a path.
_VALUES = {
    "head": "nc",
    "tail": "ncs",
    "cut": "dfbc",
    "fold": "w",
    "stat": "ct",
}
_GREP = ReadingProgram(
    OptionTable(
        letters_with_value="efmABCdD",
        names_with_value=_names("regexp file max-count context after-context before-context directories devices label"),
        any_others=True,
    ),
    skipped=1,
    instead=("-e", "-f", "--regexp", "--file"),
    path_options=("-f", "--file"),
    recursive_options=("-r", "-R", "-d", "--recursive", "--dereference-recursive", "--directories"),
    follows=("-R", "--dereference-recursive"),
)
_RG_NAMES = (
    "ignore-case smart-case case-sensitive fixed-strings word-regexp line-regexp line-number no-line-number "
    "files-with-matches files-without-match count count-matches only-matching hidden no-ignore no-ignore-vcs "
    "invert-match multiline multiline-dotall pcre2 json no-heading heading no-messages files type-list null "
    "with-filename no-filename column trim stats unrestricted text vimgrep follow no-config quiet version help "
    "passthru "
    "byte-offset crlf no-ignore-parent no-ignore-dot no-ignore-global one-file-system"
)
_RG_VALUES = (
    "regexp glob iglob type type-not after-context before-context context max-count max-depth max-filesize color "
    "colors replace sort sortr threads max-columns encoding engine"
)
_FD_NAMES = (
    "hidden no-ignore unrestricted case-sensitive ignore-case glob regex fixed-strings absolute-path list-details "
    "follow full-path print0 version help no-ignore-vcs no-ignore-parent quiet show-errors one-file-system"
)
_DIFF_NAMES = (
    "brief report-identical-files unified recursive new-file ignore-case ignore-all-space ignore-space-change "
    "ignore-blank-lines text side-by-side suppress-common-lines strip-trailing-cr no-dereference minimal color normal "
    "context stat version help"
)

READING_PROGRAMS: dict[str, ReadingProgram] = {
    **dict.fromkeys(_PATHS.split(), ReadingProgram()),
    **{
        name: ReadingProgram(OptionTable(letters_with_value=letters, any_others=True))
        for name, letters in _VALUES.items()
    },
    **dict.fromkeys(_NO_PATHS.split(), ReadingProgram(paths=False)),
    **dict.fromkeys(_CHECKSUMS.split(), ReadingProgram(listing=("-c", "--check"))),
    **dict.fromkeys(
        ("ls", "dir", "vdir"),
        ReadingProgram(follows=("-L", "--dereference"), recursive_options=("-R", "--recursive")),
    ),
    "wc": ReadingProgram(listing=("--files0-from",)),
    "du": ReadingProgram(
        OptionTable(letters_with_value="dt", any_others=True),
        follows=("-L", "--dereference"),
        listing=("--files0-from",),
        is_recursive=True,
    ),
    "readelf": ReadingProgram(check="response_file"),
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    **dict.fromkeys(
        ("base64", "base32"), ReadingProgram(OptionTable("dDi", "w", _names("decode ignore-garbage"), _names("wrap")))
    ),
    "printf": ReadingProgram(OptionTable(stops_at_operand=True), paths=False),
    "test": ReadingProgram(paths=False, check="test"),
    "[": ReadingProgram(paths=False, check="test"),
    "[[": ReadingProgram(paths=False, check="test"),
    "diff": ReadingProgram(
        OptionTable(
            "qsruNabBwiytTdcpE0123456789", "UCxIWFL", _names(_DIFF_NAMES), _names("unified context exclude color")
        ),
        check="diff",
        is_recursive=True,
    ),
    "sort": ReadingProgram(
        OptionTable(
            "bdfghiMnRrVcCmsuz",
            "ktSo",
            _names(
                "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort "
                "human-numeric-sort numeric-sort random-sort reverse version-sort check merge stable unique "
                "zero-terminated debug version help"
            ),
            _names("key field-separator buffer-size output parallel sort"),
        ),
        outputs=("-o", "--output"),
    ),
    "uniq": ReadingProgram(
        OptionTable(
            "cdDiuz",
            "fsw",
            _names("count repeated ignore-case unique zero-terminated version help"),
            _names("skip-fields skip-chars check-chars"),
        ),
        check="uniq",
    ),
    "rg": ReadingProgram(
        OptionTable("iswxFlcnNvoHIhUPau0pSLq.b", "egtTABCmdMrjE", _names(_RG_NAMES), _names(_RG_VALUES)),
        skipped=1,
        instead=("-e", "--regexp", "--files", "--type-list"),
        is_recursive=True,
        follows=("-L", "--follow"),
    ),
    **dict.fromkeys(
        ("fd", "fdfind"),
        ReadingProgram(
            OptionTable(
                "HIuisgFalLp0qV1h", "etdEcjSo", _names(_FD_NAMES), _names("extension type max-depth exclude color size")
            ),
            skipped=1,
            is_recursive=True,
            follows=("-L", "--follow"),
        ),
    ),
    "tree": ReadingProgram(
        OptionTable("adfilpsugDFhQNqxrtcnCAJX", "LPI", _names("dirsfirst noreport gitignore du prune version help")),
        is_recursive=True,
        follows=("-l",),
    ),
    "jq": ReadingProgram(
        OptionTable(
            "rcnsSeajCMR",
            "",
            _names(
                "raw-output compact-output null-input slurp sort-keys exit-status ascii-output join-output tab "
                "color-output monochrome-output raw-input version help"
            ),
            _names("indent"),
        ),
        skipped=1,
        check="jq",
    ),
    "file": ReadingProgram(
        OptionTable("bhikLN0", "F", _names("brief mime mime-type mime-encoding dereference version"))
    ),
    "strings": ReadingProgram(
        OptionTable("af", "nte", _names("all print-file-name version help"), _names("bytes radix")),
        check="response_file",
    ),
    "xxd": ReadingProgram(OptionTable("abeEipuv", "cglso"), check="one_operand"),
    "date": ReadingProgram(
        OptionTable(
            "uR", "d", _names("utc universal rfc-email iso-8601 version help"), _names("date iso-8601 rfc-3339")
        ),
        paths=False,
        check="date",
    ),
    "hostname": ReadingProgram(
        OptionTable("fsidIA", "", _names("fqdn short version help")), paths=False, check="no_operand"
    ),
    "sed": ReadingProgram(
        OptionTable(
            "nErsuzi",
            "e",
            _names("quiet silent regexp-extended separate null-data in-place posix version help"),
            _names("expression"),
        ),
        skipped=1,
        instead=("-e", "--expression"),
        check="sed",
    ),
    **dict.fromkeys(
        ("awk", "gawk", "mawk", "nawk"),
        ReadingProgram(
            OptionTable("", "Fv", _names("version help"), _names("field-separator assign"), stops_at_operand=True),
            skipped=1,
            check="awk",
        ),
    ),
    "find": ReadingProgram(check="find"),
}

VERSION_OPTIONS = frozenset({"--version", "-V", "-v", "version"})
VERSION_PROGRAMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("python", "python3", "pip", "pip3", "make", "gcc", "g++", "clang", "cargo", "rustc"), ("--version", "-V")
    ),
    **dict.fromkeys(("node", "npm", "npx", "yarn", "pnpm"), ("--version", "-v")),
    **dict.fromkeys(("uv", "ruff", "mypy", "pytest", "docker", "cmake", "bash", "perl", "ruby", "git"), ("--version",)),
    "go": ("version",),
}
"""Programs that only read when one of these options is their only argument."""
