"""Options of programs that check, build or test: what they mean for a rule that allows the program: data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["CHANGING_OPTIONS", "FLAGS", "TARGETS", "VALUE_OPTIONS"]

_SCRIPTS = ("-C", "--prefix", "--dir", "--cwd", "--script-shell", "--shell", "--node-options", "--userconfig")
_PYTHON_TESTS = ("-p", "-c", "--config-file", "--rootdir", "--confcutdir", "--basetemp", "-o", "--override-ini")
_PYTEST_OUTPUTS = ("--junitxml", "--junit-xml", "--debug", "--log-file", "--report-log", "--html", "--pastebin")
_GIT_RUNS = ("--ext-diff", "--textconv", "--exec-path", "--git-dir", "--work-tree", "--output", "--no-index")
_GIT_CHANGES = (
    "--amend",
    "-n",
    "--no-verify",
    "--fixup",
    "--squash",
    "--author",
    "--date",
    "--reset-author",
    "-C",
    "-c",
)

_SESSIONS = ("-c", "-f", "-x", "--conf", "--noxfile", "--override", "--workdir", "--root")

CHANGING_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "pytest": (*_PYTHON_TESTS, *_PYTEST_OUTPUTS, "--pdbcls", "--import-mode", "--cov-config", "--trace-config"),
    **dict.fromkeys(("npm", "yarn", "pnpm"), (*_SCRIPTS, "--globalconfig")),
    "cargo": ("-C", "-Z", "--config", "--manifest-path", "--target-dir", "--out-dir", "--artifact-dir"),
    "go": (
        *("-C", "--exec", "--toolexec", "--vettool", "--overlay", "--modfile", "--o", "--coverprofile", "--outputdir"),
        *("--cpuprofile", "--memprofile", "--blockprofile", "--mutexprofile", "--trace", "--pkgdir"),
    ),
    "git": _GIT_RUNS,
    "git commit": (*_GIT_CHANGES, "--no-gpg-sign", "--reuse-message", "--reedit-message"),
    "git add": ("-f", "--force", "--chmod", "--renormalize"),
    **dict.fromkeys(
        ("make", "gmake"),
        ("-f", "--file", "--makefile", "-C", "--directory", "-I", "--include-dir", "-E", "--eval", "-e", "-o", "-W"),
    ),
    "mypy": (
        *("--python-executable", "--config-file", "--custom-typeshed-dir", "--junit-xml", "--cache-dir", "--cache-map"),
        *("--install-types", "--any-exprs-report", "--html-report", "--linecount-report", "--txt-report"),
        *("--xml-report", "--cobertura-xml-report", "--lineprecision-report", "--xslt-html-report"),
    ),
    "pyright": ("-p", "--project", "--pythonpath", "--createstub"),
    "flake8": ("--config", "--append-config", "--output-file", "--tee"),
    "isort": ("--settings-path", "--sp"),
    **dict.fromkeys(("ruff", "black"), ("--config", "-o", "--output-file", "--cache-dir")),
    "eslint": ("-c", "--config", "--rulesdir", "--plugin", "--parser", "--resolve-plugins-relative-to", "-o", "-f"),
    "prettier": ("--config", "--plugin", "--find-config-path"),
    "tsc": ("-p", "--project", "--plugins", "--outDir", "--outFile", "--declarationDir", "--tsBuildInfoFile", "--init"),
    "tox": (*_SESSIONS, "-e", "-m", "exec", "e", "devenv", "d"),
    "nox": (*_SESSIONS, "-e", "-s", "--sessions", "-t", "--tags", "-k", "--keywords"),
    "mvn": ("-D", "--define", "-P", "--activate-profiles", "-f", "--file", "-s", "--settings", "-g", "--log-file"),
    "gradle": (
        *("-D", "--system-prop", "-P", "--project-prop", "-I", "--init-script", "-b", "--build-file", "-p"),
        *("--project-dir", "-c", "--settings-file", "--include-build"),
    ),
    "dotnet": (
        *("-s", "--settings", "--test-adapter-path", "--logger", "-o", "--output", "--results-directory"),
        *("-p", "--property", "-t", "--target"),
    ),
}
"""Options by which these programs, or their subcommands, run other code, work elsewhere, write a file, or change what
is already recorded."""

TARGETS: Final = frozenset({"mvn", "gradle", "make", "gmake"})
"""Programs that run each target that a word names: `mvn test deploy` also deploys."""

VALUE_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "pytest": (
        *("-k", "-m", "-n", "-W", "--deselect", "--ignore", "--ignore-glob", "--cov", "--last-failed-no-failures"),
        *("--durations-min", "--timeout"),
    ),
    "unittest": ("-k", "-s", "--start-directory", "-t", "--top-level-directory"),
    "git": (
        *("-m", "--message", "-am", "-S", "-G", "-L", "-F", "--file", "--author", "--since", "--until", "--after"),
        *("--before", "--grep", "--format", "--pretty", "--contains", "--exclude", "--match"),
    ),
    **dict.fromkeys(("npm", "yarn", "pnpm"), ("-w", "--workspace", "--filter", "-F")),
    "cargo": ("-p", "--package", "--test", "--bin", "--example", "--features", "--exclude"),
    "go": ("-run", "-bench", "-skip", "-fuzz", "-tags", "-coverpkg"),
    "mypy": ("-p", "--package", "-m", "--module", "--exclude"),
    "ruff": ("--exclude", "--extend-exclude", "--per-file-ignores"),
    "black": ("--include", "--exclude", "--extend-exclude", "--force-exclude"),
    "flake8": ("--exclude", "--extend-exclude", "--filename", "--per-file-ignores"),
    "isort": ("--skip", "--skip-glob", "--src"),
    "eslint": ("--ext", "--ignore-pattern", "--ignore-path"),
    "prettier": ("--ignore-path",),
    "tsc": ("--rootDir",),
    "mvn": ("-pl", "--projects", "-T", "--threads", "-rf", "--resume-from"),
    "gradle": ("--tests", "-x", "--exclude-task", "--console", "--warning-mode", "--max-workers"),
    **dict.fromkeys(("make", "gmake"), ("-j", "-l")),
}
"""Options whose value may be a path, a pattern or text, and is only read."""

_LETTERS = "qvsxlhaAuVn"
_NAMES = (
    "verbose quiet help version check fix diff strict all watch silent no-color color cached staged stat name-only "
    "oneline exitfirst lf last-failed ff failed-first nf new-first sw stepwise co collect-only no-header no-summary "
    "showlocals disable-warnings runxfail no-cov strict-markers strict-config full-trace setup-show failfast catch "
    "buffer locals release workspace all-features all-targets no-default-features no-fail-fast locked offline lib bins "
    "tests race short json if-present runInBand ci coverage updateSnapshot noEmit write list-different no-ext-diff "
    "patch update intent-to-add dry-run signoff porcelain branch no-pager shortstat numstat ignored word-diff "
    "pretty decorate graph reverse no-merges follow no-patch keep-going just-print unsafe-fixes preview no-cache "
    "show-fixes statistics incremental no-incremental"
)
FLAGS: Final = frozenset((*(f"-{letter}" for letter in _LETTERS), *(f"--{name}" for name in _NAMES.split())))
"""Options that take no value from the next word, so that this is an operand."""
